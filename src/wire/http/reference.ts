/** The table of routes in docs/http.md. */
import { isSetting } from "../../config/mod.ts";
import type { Route } from "./contract.ts";
import { ROUTES } from "./routes/mod.ts";

const START = "<!-- Routes, made by `deno task docs` from src/wire/http/routes/: change them there. -->\n";
const END = "<!-- End of the routes. -->\n";

/** The page with the table between its marks made anew. */
export function withRoutes(page: string): string {
  const start = page.indexOf(START), end = page.indexOf(END);
  if (start < 0 || end < start) throw new Error("docs/http.md has lost the marks around its routes");
  const lines = ["| Path | Purpose |", "|---|---|", ...ROUTES.map(row)];
  return `${page.slice(0, start + START.length)}\n${lines.join("\n")}\n\n${page.slice(end)}`;
}

function row({ paths, methods, usage, summary }: Route): string {
  const [path, ...others] = isSetting(paths) ? (paths.default as string).split(",") : usage === undefined ? paths : [];
  const calls = usage === undefined ? Object.keys(methods).map((method) => `${method} ${path}`) : [usage];
  return `| ${[...calls, ...others].map((call) => `\`${call}\``).join(", ")} | ${summary} |`;
}
