/** The npm packages that deno.lock names: those that the program itself imports, and what these import. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { EMBEDDED } from "../embedded.ts";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Where the program's modules begin: workers are entry points of their own, as nothing imports them. */
export const PROGRAM = ["main.ts", ...EMBEDDED.filter((path) => path.endsWith(".ts"))];

export interface Package {
  /** `name@version`, as purls, SBOM and executables name it. */
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** `sha512-…`, of the archive in the registry. */
  readonly integrity: string;
  /** Ids. */
  readonly dependencies: string[];
  /** The program imports it by its own name. */
  readonly isDirect: boolean;
}

interface Lock {
  /** `npm:name@range` to version. */
  specifiers: Record<string, string>;
  npm: Record<string, { integrity: string; dependencies?: string[] }>;
}

export function lockedPackages(lock: Lock = readJson(join(ROOT, "deno.lock")) as Lock): Package[] {
  const direct = new Set(
    Object.entries(lock.specifiers).map(([specifier, version]) =>
      `${/^npm:(@?[^@]+)@/.exec(specifier)![1]}@${version}`
    ),
  );
  const packages = Object.entries(lock.npm).map(([key, { integrity, dependencies = [] }]) => {
    // What stands behind `_` are the peers that were chosen for it.
    const { name, version } = /^(?<name>@?[^@]+)@(?<version>[^_]+)/.exec(key)!.groups!;
    const id = `${name}@${version}`;
    return { id, name, version, integrity, dependencies, isDirect: direct.has(key) };
  });
  // A dependency is a bare name as long as there is one version of it.
  const idOf = (dependency: string) =>
    packages.find(({ id, name }) => dependency === name || dependency.replace(/_.*$/, "") === id)!.id;
  return packages.map((one) => ({ ...one, dependencies: one.dependencies.map(idOf) }));
}

/** Where Deno has unpacked it, as it came from the registry. */
export class PackageCache {
  private constructor(private readonly directory: string) {}

  /** Downloads what is missing. */
  static async open(entries: readonly string[]): Promise<PackageCache> {
    await run(["cache", "--quiet", "--lock=deno.lock", "--frozen", ...entries]);
    return new PackageCache(JSON.parse(await run(["info", "--json"])).npmCache);
  }

  /** The path of the package below the cache, and the whole one. */
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

/** Paths of the files below a directory, sorted, with `/` between the names. */
export function filesBelow(directory: string, relative = ""): string[] {
  return [...Deno.readDirSync(join(directory, relative))]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(({ name, isDirectory }) =>
      isDirectory ? filesBelow(directory, `${relative}${name}/`) : [`${relative}${name}`]
    );
}

/** Output of a command of this Deno. @throws {Error} with what it said when it fails. */
export async function run(args: string[], options: { cwd?: string; env?: Record<string, string> } = {}) {
  const command = new Deno.Command(Deno.execPath(), { args, cwd: ROOT, ...options, stdout: "piped", stderr: "piped" });
  const { success, stdout, stderr } = await command.output();
  const text = new TextDecoder();
  if (!success) throw new Error(`deno ${args[0]} failed:\n${text.decode(stderr)}`);
  return text.decode(stdout);
}
