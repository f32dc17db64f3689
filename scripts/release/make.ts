/**
 * Makes executables by `deno compile`, and everything released with them, in one folder:
 *
 *     sundial-VERSION-SYSTEM.tar.gz, .zip for Windows    executable, licences, README, CHANGELOG, conf/, bill of materials
 *     sundial-VERSION.cdx.json                           the bill of materials
 *     SHA256SUMS                                         of all these
 *     SYSTEM/                                            the contents of the archive
 *
 * The output depends only on the sources and `time`.
 */
import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import about from "../../deno.json" with { type: "json" };
import { consoleDirectory } from "../console/mod.ts";
import { type ArchiveFile, tarGz, zip } from "./archive.ts";
import { licenseTexts } from "./licenses.ts";
import { CONSOLE, PackageCache, PROGRAM, ROOT, shippedPackages } from "./packages.ts";
import { billOfMaterials } from "./sbom.ts";
import { compile, stage } from "./stage.ts";
import { namesOf, TARGETS } from "./targets.ts";

const SHIPPED = [
  "CHANGELOG.md",
  "LICENSE",
  "README.md",
  "conf/alert-manager-tpl.json",
  "conf/log.conf",
  "conf/server.conf",
];

export interface ReleaseOptions {
  /** Deno's names of the targets. */
  targets: readonly string[];
  /** Output folder. */
  dist: string;
  /** Folder for the stage, which is kept. */
  build: string;
  time: Date;
}

/** Returns the names of the archives. */
export async function makeRelease({ targets, dist, build, time }: ReleaseOptions): Promise<string[]> {
  const cache = await PackageCache.open([...PROGRAM, ...CONSOLE]);
  const consoleFiles = await consoleDirectory(ROOT);
  const packages = shippedPackages(consoleFiles);
  const staged = stage(build, cache, consoleFiles, time);
  const text = new TextEncoder();
  const materials = text.encode(billOfMaterials(about.version, packages, cache, time));
  const common: ArchiveFile[] = [
    ...SHIPPED.map((path) => ({ path, bytes: Deno.readFileSync(join(ROOT, path)) })),
    { path: "THIRD-PARTY-LICENSES", bytes: text.encode(licenseTexts(packages, cache)) },
    { path: "sundial.cdx.json", bytes: materials },
  ];
  const sums: string[] = [];
  const write = (name: string, bytes: Uint8Array) => {
    Deno.writeFileSync(join(dist, name), bytes);
    sums.push(`${createHash("sha256").update(bytes).digest("hex")}  ${name}\n`);
  };
  Deno.mkdirSync(dist, { recursive: true });
  const archives: string[] = [];
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
    archives.push(archive);
  }
  write(`sundial-${about.version}.cdx.json`, materials);
  Deno.writeTextFileSync(join(dist, "SHA256SUMS"), sums.join(""));
  return archives;
}
