/** The licence texts of the executable's parts: npm packages, Deno, V8. */
import { join } from "node:path";
import { type Package, type PackageCache, readJson, ROOT } from "./packages.ts";

/** A part that is not an npm package. Its licence text is in the file next to this one. */
export interface RuntimePart {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly purl: string;
  readonly text: string;
}

export function runtimeParts(): RuntimePart[] {
  const text = (name: string) => Deno.readTextFileSync(join(ROOT, "scripts/release/licenses", `${name}.txt`));
  const { deno, v8 } = Deno.version;
  return [
    { name: "deno", version: deno, license: "MIT", purl: `pkg:github/denoland/deno@v${deno}`, text: text("deno") },
    { name: "v8", version: v8, license: "BSD-3-Clause", purl: `pkg:generic/v8@${v8}`, text: text("v8") },
  ];
}

/** The SPDX expression in its package.json. */
export function licenseOf(one: Package, cache: PackageCache): string {
  const { license } = readJson(join(cache.find(one).path, "package.json")) as { license?: string };
  if (typeof license !== "string") throw new Error(`${one.id} says no licence in its package.json`);
  return license;
}

/** @throws {Error} if a package has no licence text: it may not be redistributed. */
export function licenseTexts(packages: readonly Package[], cache: PackageCache): string {
  const parts = packages.map((one) => ({
    title: `${one.id} (${licenseOf(one, cache)})`,
    text: licenseFiles(one, cache),
  }));
  const runtime = runtimeParts().map(({ name, version, license, text }) => ({
    title: `${name} ${version} (${license})`,
    text: name === "deno" ? `${text.trim()}\n\n${OF_DENO}` : text,
  }));
  return [INTRODUCTION, ...[...runtime, ...parts].map(({ title, text }) => section(title, text))].join("\n");
}

const INTRODUCTION = `Sundial itself is under the Apache License 2.0, in the file LICENSE.
The executable holds the works below, each under the terms that follow its name.
`;
const OF_DENO =
  `The libraries that Deno is linked from are listed, with their licences, in Cargo.lock and Cargo.toml of this
version's source: https://github.com/denoland/deno`;

function section(title: string, text: string): string {
  return `${"=".repeat(80)}\n${title}\n${"=".repeat(80)}\n\n${text.replaceAll("\r\n", "\n").trim()}\n`;
}

function licenseFiles(one: Package, cache: PackageCache): string {
  const { path } = cache.find(one);
  const names = [...Deno.readDirSync(path)].map(({ name }) => name)
    .filter((name) => /^(?:licen[cs]e|copying|notice)(?:\.\w+)?$/i.test(name)).sort();
  if (names.length === 0) throw new Error(`${one.id} has no licence text`);
  return names.map((name) => Deno.readTextFileSync(join(path, name)).trim()).join("\n\n");
}
