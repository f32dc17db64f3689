/** The npm packages of the program and of the console, at the versions of deno.lock. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PACKAGES } from "../console/packages.ts";
import { EMBEDDED } from "../embedded.ts";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Entry points of the program. Workers are entry points too, because nothing imports them. */
export const PROGRAM = ["main.ts", ...EMBEDDED.filter((path) => path.endsWith(".ts"))];

/** A start from the sources builds the console: its entry point, and the bundler. */
export const CONSOLE = ["src/console/main.tsx", "scripts/console/build.ts"];

export interface Package {
  /** `name@version`, as in purls, the SBOM and executables. */
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** `sha512-…` of the archive in the registry. */
  readonly integrity: string;
  /** Ids of packages. */
  readonly dependencies: string[];
  /** The program or the console imports it directly. */
  readonly isDirect: boolean;
}

interface Lock {
  version: string;
  /** `npm:name@range` to version. */
  specifiers: Record<string, string>;
  npm: Record<string, { integrity: string; dependencies?: string[] }>;
}

/** Packages that the program imports, directly or indirectly. */
export function programPackages(): Package[] {
  return reachable(importsOf("deno.json"));
}

/** The part of deno.lock that the program needs. */
export function programLock(): unknown {
  const lock = readJson(join(ROOT, "deno.lock")) as Lock;
  const ids = new Set(programPackages().map(({ id }) => id));
  const only = <T>(entries: Record<string, T>, idOf: (key: string, value: T) => string) =>
    Object.fromEntries(Object.entries(entries).filter(([key, value]) => ids.has(idOf(key, value))));
  return {
    version: lock.version,
    specifiers: only(lock.specifiers, (key, version) => `${/^npm:(@?[^@]+)@/.exec(key)![1]}@${version.split("_")[0]}`),
    npm: only(lock.npm, (key) => /^@?[^@]+@[^_]+/.exec(key)![0]),
    workspace: { dependencies: Object.values(importMapOf("deno.json")).sort() },
  };
}

/** Packages that the console's files are bundled from. `consoleFiles`: a directory that `scripts/console/` has built. */
function consolePackages(consoleFiles: string): Package[] {
  const bundled = new Set(readJson(join(consoleFiles, PACKAGES)) as string[]);
  const all = reachable(importsOf("src/console/deno.json")).filter(({ id }) => bundled.has(id));
  return all.map((one) => ({ ...one, dependencies: one.dependencies.filter((id) => bundled.has(id)) }));
}

/** All packages that are distributed with an executable. */
export function shippedPackages(consoleFiles: string): Package[] {
  const byId = new Map([...programPackages(), ...consolePackages(consoleFiles)].map((one) => [one.id, one]));
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** `name@version` of each package in an import map. */
function importsOf(path: string): Set<string> {
  return new Set(Object.values(importMapOf(path)).map((specifier) => /^npm:(@?[^@]+@[^/]+)/.exec(specifier)![1]));
}

function importMapOf(path: string): Record<string, string> {
  return (readJson(join(ROOT, path)) as { imports: Record<string, string> }).imports;
}

function reachable(direct: ReadonlySet<string>): Package[] {
  const all = new Map(lockedPackages().map((one) => [one.id, one]));
  const found = new Map<string, Package>();
  const visit = (id: string) => {
    if (found.has(id)) return;
    const one = all.get(id);
    if (one === undefined) throw new Error(`${id} is not in deno.lock: run deno task lock`);
    found.set(id, { ...one, isDirect: direct.has(id) });
    one.dependencies.forEach(visit);
  };
  direct.forEach(visit);
  return [...found.values()];
}

function lockedPackages(): Omit<Package, "isDirect">[] {
  const { npm } = readJson(join(ROOT, "deno.lock")) as Lock;
  const packages = Object.entries(npm).map(([key, { integrity, dependencies = [] }]) => {
    // After `_` come the peer dependencies that were chosen.
    const { name, version } = /^(?<name>@?[^@]+)@(?<version>[^_]+)/.exec(key)!.groups!;
    return { id: `${name}@${version}`, name, version, integrity, dependencies };
  });
  // A dependency is a bare name if there is only one version of it.
  const idOf = (dependency: string) =>
    packages.find(({ id, name }) => dependency === name || dependency.replace(/_.*$/, "") === id)!.id;
  return packages.map((one) => ({ ...one, dependencies: one.dependencies.map(idOf) }));
}

/** Packages as unpacked by Deno, unmodified from the registry. */
export class PackageCache {
  private constructor(private readonly directory: string) {}

  /** Downloads missing packages. */
  static async open(entries: readonly string[]): Promise<PackageCache> {
    await run(["cache", "--quiet", "--lock=deno.lock", "--frozen", ...entries]);
    return new PackageCache(JSON.parse(await run(["info", "--json"])).npmCache);
  }

  /** The path of the package relative to the cache, and the absolute one. */
  find({ id, name, version }: Package): { relative: string; path: string } {
    // The first folder is the registry's host.
    for (const { name: registry } of Deno.readDirSync(this.directory)) {
      const relative = join(registry, ...name.split("/"), version);
      const path = join(this.directory, relative);
      if (exists(path)) return { relative, path };
    }
    throw new Error(`${id} is not in Deno's cache`);
  }
}

export function readJson(path: string): unknown {
  return JSON.parse(Deno.readTextFileSync(path));
}

export function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Sorted paths of the files below a directory, separated by `/`. */
export function filesBelow(directory: string, relative = ""): string[] {
  return [...Deno.readDirSync(join(directory, relative))]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(({ name, isDirectory }) =>
      isDirectory ? filesBelow(directory, `${relative}${name}/`) : [`${relative}${name}`]
    );
}

/** Returns the output of a command of this Deno. @throws {Error} with the output if it fails. */
export async function run(args: string[], options: { cwd?: string; env?: Record<string, string> } = {}) {
  const command = new Deno.Command(Deno.execPath(), { args, cwd: ROOT, ...options, stdout: "piped", stderr: "piped" });
  const { success, stdout, stderr } = await command.output();
  const text = new TextDecoder();
  if (!success) throw new Error(`deno ${args[0]} failed:\n${text.decode(stderr)}`);
  return text.decode(stdout);
}
