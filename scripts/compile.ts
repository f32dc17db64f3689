/**
 * Executables by `deno compile`, one a target, with their checksums in dist/SHA256SUMS.
 *
 *     deno task compile [TARGET…]        none: for this machine
 *     deno task compile --all
 */
import { createHash } from "node:crypto";
import { EMBEDDED } from "./embedded.ts";
import { deno, START_FLAGS } from "./flags.ts";

const TARGETS = [
  "x86_64-unknown-linux-gnu",
  "aarch64-unknown-linux-gnu",
  "x86_64-apple-darwin",
  "aarch64-apple-darwin",
  "x86_64-pc-windows-msvc",
];

const wanted = Deno.args.includes("--all") ? TARGETS : Deno.args.length > 0 ? Deno.args : [Deno.build.target];
const dist = new URL("../dist/", import.meta.url);
Deno.mkdirSync(dist, { recursive: true });
const includes = EMBEDDED.flatMap((path) => ["--include", path]);
for (const target of wanted) {
  const status = await deno(
    "compile",
    ...START_FLAGS,
    ...includes,
    "--target",
    target,
    "--output",
    `dist/${nameOf(target)}`,
    "main.ts",
  );
  if (status !== 0) Deno.exit(status);
}
const sums = [...Deno.readDirSync(dist)].map((entry) => entry.name).filter((name) => name.startsWith("sundial-")).sort()
  .map((name) => `${createHash("sha256").update(Deno.readFileSync(new URL(name, dist))).digest("hex")}  ${name}\n`);
Deno.writeTextFileSync(new URL("SHA256SUMS", dist), sums.join(""));

function nameOf(target: string): string {
  const cpu = target.startsWith("aarch64") ? "arm64" : "x64";
  const system = target.includes("darwin") ? "macos" : target.includes("windows") ? "windows" : "linux";
  return `sundial-${system}-${cpu}${system === "windows" ? ".exe" : ""}`;
}
