/**
 * Writes the generated files: conf/server.conf, the reference pages in docs/ and the grammar's recipe.
 *
 *     deno task docs [--check]        --check: writes nothing, fails if something is outdated
 */
import { SECTIONS } from "../src/command/settings.ts";
import { manualPage, serverConf } from "../src/config/mod.ts";
import { metricsPage } from "../src/metrics/reference.ts";
import { withRoutes } from "../src/wire/http/reference.ts";
import { grammarRecipe } from "../src/sql/grammar.ts";
import { functionsPage, syntaxPage, typesPage } from "../src/sql/reference.ts";

const GENERATED: [string, () => string][] = [
  ["conf/server.conf", () => serverConf(SECTIONS)],
  ["docs/configuration.md", () => manualPage(SECTIONS)],
  ["docs/functions.md", functionsPage],
  ["docs/http.md", () => withRoutes(readText("docs/http.md"))],
  ["docs/metrics.md", metricsPage],
  ["docs/syntax.md", syntaxPage],
  ["docs/types.md", typesPage],
  ["src/sql/grammar.recipe.json", grammarRecipe],
];

/** Paths of generated files that are outdated. */
export function outdated(): string[] {
  return GENERATED.filter(([path, make]) => readText(path) !== make()).map(([path]) => path);
}

const fileUrl = (path: string) => new URL(`../${path}`, import.meta.url);

function readText(path: string): string {
  try {
    return Deno.readTextFileSync(fileUrl(path)).replaceAll("\r\n", "\n");
  } catch {
    return "";
  }
}

if (import.meta.main) {
  const paths = outdated();
  if (Deno.args.includes("--check")) {
    for (const path of paths) console.error(`${path} is not up to date: run deno task docs`);
    Deno.exit(paths.length > 0 ? 1 : 0);
  }
  for (const [path, make] of GENERATED) if (paths.includes(path)) Deno.writeTextFileSync(fileUrl(path), make());
}
