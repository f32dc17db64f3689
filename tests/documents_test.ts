/**
 * Verifies README.md and docs/: runs their blocks, compares the outputs, and checks the links.
 *
 *     deno run -A tests/documents_test.ts [PAGE …]      rewrites the outputs
 */
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { runPage } from "./documents.ts";
import { fromFileUrl } from "./paths.ts";

const ROOT = fromFileUrl("../");
const PAGES = ["README.md", ...pagesOf("docs")];
/** Nothing in these is run. */
const FURTHER_PAGES = ["CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md", ...pagesOf("docs/architecture")];

for (const page of PAGES) {
  Deno.test(`${page} describes what happens`, async () => {
    const { text, skipped } = await runPage(join(ROOT, page));
    for (const each of skipped) console.log(`skipped: ${page}, ${each}`);
    assert.equal(text, read(page));
  });
}

Deno.test("links between the pages lead to files and headings", () => {
  const broken: string[] = [];
  for (const page of [...PAGES, ...FURTHER_PAGES]) {
    const text = withoutCode(read(page));
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [file, heading] = target.split("#");
      const path = file === "" ? page : join(dirname(page), file);
      if (!exists(path)) broken.push(`${page}: ${target}`);
      else if (heading !== undefined && !anchorsOf(read(path)).has(heading)) broken.push(`${page}: ${target}`);
    }
  }
  assert.deepEqual(broken, []);
});

Deno.test("docs/README.md links to every file of docs/", () => {
  const index = read("docs/README.md");
  const files = [...Deno.readDirSync(join(ROOT, "docs"))].filter((entry) => entry.isFile).map(({ name }) => name);
  assert.deepEqual(files.filter((name) => name !== "README.md" && !index.includes(`](${name})`)), []);
});

function pagesOf(directory: string): string[] {
  const names = [...Deno.readDirSync(join(ROOT, directory))].map(({ name }) => `${directory}/${name}`);
  return names.filter((path) => path.endsWith(".md")).toSorted();
}

function read(path: string): string {
  return Deno.readTextFileSync(join(ROOT, path)).replaceAll("\r\n", "\n");
}

function exists(path: string): boolean {
  try {
    Deno.statSync(join(ROOT, path));
    return true;
  } catch {
    return false;
  }
}

const withoutCode = (text: string) => text.replace(/^```[\s\S]*?^```$/gm, "").replace(/`[^`\n]*`/g, "");

/** Anchors of headings, as GitHub generates them. */
function anchorsOf(text: string): Set<string> {
  const headings = text.replace(/^```[\s\S]*?^```$/gm, "").matchAll(/^#+ (.*)$/gm);
  return new Set(
    [...headings].map(([, title]) => title.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-")),
  );
}

if (import.meta.main) {
  for (const page of Deno.args.length > 0 ? Deno.args : PAGES) {
    const { text, skipped, ran } = await runPage(join(ROOT, page));
    console.log(`${page}: ${ran} blocks run${skipped.map((each) => `\n  skipped: ${each}`).join("")}`);
    Deno.writeTextFileSync(join(ROOT, page), text);
  }
}
