/**
 * Builds the console: `src/console/` → static files in `build/console-HASH/`, where HASH is the hash of the sources. A start from the
 * sources builds them once; executables embed them. Packages and the bundler have the versions of deno.lock.
 */
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { build, stop } from "esbuild";
import { exists } from "../release/packages.ts";
import { PACKAGES } from "./packages.ts";
import { isSource } from "./sources.ts";

/** Bundles the console of the repository at `root` into `output`, which must not exist. */
export async function buildConsole(root: string, output: string): Promise<void> {
  const source = join(root, "src/console");
  const work = `${output}.${Deno.pid}`;
  const packages = join(work, "node_modules"), files = join(work, "files");
  Deno.mkdirSync(packages, { recursive: true });
  try {
    const linked = await linkPackages(root, join(source, "main.tsx"), packages);
    const { metafile } = await build({
      absWorkingDir: root,
      entryPoints: [join(source, "main.tsx")],
      outdir: files,
      entryNames: "[name]-[hash]",
      chunkNames: "[name]-[hash]",
      bundle: true,
      splitting: true,
      format: "esm",
      target: "es2022",
      minify: true,
      legalComments: "none",
      jsx: "automatic",
      jsxImportSource: "preact",
      nodePaths: [packages],
      logLevel: "error",
      metafile: true,
    });
    const paths = Object.keys(metafile.inputs), inputs = paths.map((path) => join(root, path));
    const unknown = paths.find((path) => path.startsWith("src/") && !isSource(path));
    // Its changes would not lead to a new build.
    if (unknown !== undefined) throw new Error(`${unknown} is bundled, but is not in the hash of the sources`);
    const bundled = [...linked].filter(([, path]) => inputs.some((input) => input.startsWith(join(path, "/"))));
    Deno.writeTextFileSync(
      join(files, PACKAGES),
      JSON.stringify(bundled.map(([id]) => withoutPeers(id)).sort()) + "\n",
    );
    writePage(join(source, "index.html"), files);
    for (const { name } of [...Deno.readDirSync(files)]) compress(join(files, name));
    Deno.mkdirSync(dirname(output), { recursive: true });
    moveInto(files, output);
  } finally {
    await stop();
    Deno.removeSync(work, { recursive: true });
  }
}

/** Peers follow `_` in the ids of `deno info`. */
const withoutPeers = (id: string) => /^@?[^@]+@[^_]+/.exec(id)![0];

/** Another process may have built the same files in the meantime. */
function moveInto(files: string, output: string): void {
  try {
    Deno.renameSync(files, output);
  } catch (error) {
    if (!exists(output)) throw error;
  }
}

interface Graph {
  npmPackages: Record<string, { name: string; localPath: string }>;
}

/**
 * Links the packages that `entry` needs into one folder by name, because esbuild cannot read Deno's cache. Returns the path of each
 * package by `name@version`.
 */
async function linkPackages(root: string, entry: string, folder: string): Promise<Map<string, string>> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", "--lock=deno.lock", entry],
    cwd: root,
  }).output();
  if (!success) throw new Error(`deno info: ${new TextDecoder().decode(stderr).trim()}`);
  const { npmPackages } = JSON.parse(new TextDecoder().decode(stdout)) as Graph;
  const linked = new Map<string, string>();
  for (const [id, { name, localPath }] of Object.entries(npmPackages)) {
    const other = linked.get(name);
    if (other !== undefined) {
      throw new Error(`the console needs ${other} and ${id}: one version of a package is expected`);
    }
    linked.set(name, id);
    const link = join(folder, name);
    Deno.mkdirSync(dirname(link), { recursive: true });
    Deno.symlinkSync(localPath, link, { type: "junction" });
  }
  return new Map(Object.entries(npmPackages).map(([id, { localPath }]) => [id, localPath]));
}

/** The page refers to its script and style by their hashed names, relative to its own address. */
function writePage(template: string, files: string): void {
  const names = [...Deno.readDirSync(files)].map(({ name }) => name);
  const nameOf = (pattern: RegExp) => `assets/${names.find((name) => pattern.test(name))}`;
  const page = Deno.readTextFileSync(template)
    .replaceAll("{SCRIPT}", nameOf(/^main-\w+\.js$/))
    .replaceAll("{STYLE}", nameOf(/^main-\w+\.css$/));
  Deno.writeTextFileSync(join(files, "index.html"), page);
}

function compress(path: string): void {
  if (/\.(?:js|css)$/.test(path)) {
    Deno.writeFileSync(`${path}.gz`, gzipSync(Deno.readFileSync(path), { level: 9 }));
  }
}
