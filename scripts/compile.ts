/**
 * Executables by `deno compile`, and what is handed out with them, all in dist/:
 *
 *     sundial-VERSION-SYSTEM.tar.gz, .zip for Windows    executable, licences, README, CHANGELOG, conf/, bill of materials
 *     sundial-VERSION.cdx.json                           the bill of materials by itself
 *     SHA256SUMS                                         of all these
 *     SYSTEM/                                            what is in the archive
 *
 *     deno task compile [TARGET…]        none: for this machine
 *     deno task compile --all
 *
 * The same sources give the same bytes. Times are those of SOURCE_DATE_EPOCH (seconds), or the first that a zip file can tell.
 */
import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import about from "../deno.json" with { type: "json" };
import { type ArchiveFile, tarGz, zip } from "./release/archive.ts";
import { licenseTexts } from "./release/licenses.ts";
import { exists, PackageCache, PROGRAM, ROOT } from "./release/packages.ts";
import { billOfMaterials } from "./release/sbom.ts";
import { compile, stage } from "./release/stage.ts";
import { namesOf, TARGETS } from "./release/targets.ts";

const SHIPPED = [
  "CHANGELOG.md",
  "LICENSE",
  "README.md",
  "conf/alert-manager-tpl.json",
  "conf/log.conf",
  "conf/server.conf",
];

const targets = Deno.args.includes("--all")
  ? Object.keys(TARGETS)
  : Deno.args.length > 0
  ? Deno.args
  : [Deno.build.target];
for (const target of targets) {
  if (!Object.hasOwn(TARGETS, target)) {
    console.error(`compile: ${target} is not one of ${Object.keys(TARGETS).join(", ")}`);
    Deno.exit(1);
  }
}
const time = new Date(Number(Deno.env.get("SOURCE_DATE_EPOCH") ?? Date.UTC(1980, 0) / 1000) * 1000);
const dist = join(ROOT, "dist");
if (exists(dist)) Deno.removeSync(dist, { recursive: true });
Deno.mkdirSync(dist);

const cache = await PackageCache.open(PROGRAM);
const staged = stage(join(ROOT, "build/compile"), cache, time);
const materials = new TextEncoder().encode(billOfMaterials(about.version, cache, time));
const common: ArchiveFile[] = [
  ...SHIPPED.map((path) => ({ path, bytes: Deno.readFileSync(join(ROOT, path)) })),
  { path: "THIRD-PARTY-LICENSES", bytes: new TextEncoder().encode(licenseTexts(cache)) },
  { path: "sundial.cdx.json", bytes: materials },
];

const written: string[] = [];
function write(name: string, bytes: Uint8Array): void {
  Deno.writeFileSync(join(dist, name), bytes);
  written.push(`${createHash("sha256").update(bytes).digest("hex")}  ${name}\n`);
}

for (const target of targets) {
  const system = TARGETS[target];
  const { archive, program } = namesOf(system, about.version);
  const folder = join(dist, system);
  await compile(staged, target, join(folder, program));
  for (const { path, bytes } of common) {
    Deno.mkdirSync(dirname(join(folder, path)), { recursive: true });
    Deno.writeFileSync(join(folder, path), bytes);
  }
  const files = [{ path: program, bytes: Deno.readFileSync(join(folder, program)), executable: true }, ...common];
  const pack = archive.endsWith(".zip") ? zip : tarGz;
  const top = `sundial-${about.version}-${system}/`;
  write(archive, pack(files.map((file) => ({ ...file, path: top + file.path })), time));
  console.log(`dist/${archive}`);
}
write(`sundial-${about.version}.cdx.json`, materials);
Deno.writeTextFileSync(join(dist, "SHA256SUMS"), written.join(""));
