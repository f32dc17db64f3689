/**
 * Makes executables and archives in dist/: see scripts/release/make.ts and docs/release.md.
 *
 *     deno task compile [TARGET…]        default: this machine
 *     deno task compile --all
 *
 * File times are SOURCE_DATE_EPOCH (seconds), or the earliest time that a zip file can represent.
 */
import { join } from "node:path";
import { makeRelease } from "./release/make.ts";
import { exists, ROOT } from "./release/packages.ts";
import { TARGETS } from "./release/targets.ts";

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
for (const name of await makeRelease({ targets, dist, build: join(ROOT, "build/compile"), time })) {
  console.log(`dist/${name}`);
}
