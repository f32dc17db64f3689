/**
 * Checks types with `noUncheckedIndexedAccess`: `list[k]` may be undefined. Errors in tests and in the layers of `UNCHECKED` are left out.
 * A workspace member with this option would not do: Deno checks the files that it imports with the same option.
 *
 *     deno run -A scripts/check-indexes.ts
 */
const ROOT = new URL("../", import.meta.url);
const SRC = new URL("src/", ROOT).href;

/** Their loops index views of memory, bytes and columns: some 3,500 reads whose indexes are computed from row counts. */
const UNCHECKED = [
  "engine/",
  "sql/functions/",
  "storage/",
  "wire/csv/",
  "wire/encode/",
  "wire/line/",
];
/** Parts of these layers without such loops. */
const CHECKED = ["engine/physical/"];
/** Tests, and what imports packages for tests alone. */
const TESTS = /_test\.ts$|^properties\.ts$/;
/** Checked by `deno check`: the option is in their own `deno.json`. */
const OWN_OPTIONS = ["console/"];

/** Prints what is wrong, and returns whether nothing is. */
export async function checkIndexes(): Promise<boolean> {
  const { compilerOptions, imports, nodeModulesDir } = JSON.parse(Deno.readTextFileSync(new URL("deno.json", ROOT)));
  const config = Deno.makeTempFileSync({ suffix: ".json" });
  try {
    const strict = { ...compilerOptions, noUncheckedIndexedAccess: true };
    Deno.writeTextFileSync(config, JSON.stringify({ compilerOptions: strict, imports, nodeModulesDir, lock: false }));
    const { stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["check", "--config", config, "main.ts", ...sources()],
      cwd: ROOT,
      env: { NO_COLOR: "1" },
      stdout: "null",
    }).output();
    const text = new TextDecoder().decode(stderr);
    if (!text.includes("error: Type checking failed.")) {
      throw new Error(`deno check has found no errors in the layers left out: ${text}`);
    }
    const errors = text.split("\n\n").filter((error) => error.includes("[ERROR]") && isChecked(error));
    for (const error of errors) console.error(`${error}\n`);
    if (errors.length > 0) console.error(`${errors.length} errors with noUncheckedIndexedAccess`);
    return errors.length === 0;
  } finally {
    Deno.removeSync(config);
  }
}

/** The position of an error is at its end. Other files are checked by `deno check` only. */
function isChecked(error: string): boolean {
  const [, url = ""] = /\bat (file:\S+?):\d+:\d+/.exec(error) ?? [];
  return url.startsWith(SRC) && !isLeftOut(url.slice(SRC.length));
}

function isLeftOut(path: string): boolean {
  const isIn = (layers: readonly string[]) => layers.some((layer) => path.startsWith(layer));
  return TESTS.test(path) || isIn(UNCHECKED) && !isIn(CHECKED);
}

function sources(folder = "src/"): string[] {
  return [...Deno.readDirSync(new URL(folder, ROOT))].flatMap(({ name, isDirectory }) => {
    const path = `${folder}${name}`;
    if (OWN_OPTIONS.some((layer) => `${path}/` === `src/${layer}`)) return [];
    if (isDirectory) return sources(`${path}/`);
    return /\.ts$/.test(name) && !isLeftOut(path.slice("src/".length)) ? [path] : [];
  });
}

if (import.meta.main) Deno.exit(await checkIndexes() ? 0 : 1);
