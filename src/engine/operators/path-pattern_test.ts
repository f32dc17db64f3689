import assert from "node:assert/strict";
import { PathPattern } from "./path-pattern.ts";

function matches(pattern: string, path: string): boolean {
  const of = new PathPattern(pattern), names = path.split("/"), file = names.pop()!;
  return of.matchesFile(names.reduce((states, name) => of.within(states, name), of.start()), file);
}

const cases: [pattern: string, matching: string[], others: string[]][] = [
  ["*.csv", ["a.csv", ".csv"], ["a.csv.gz", "sub/a.csv", "A.CSV"]],
  ["a?.csv", ["a1.csv", "aé.csv", "a😀.csv"], ["a.csv", "a12.csv"]],
  ["[ab]*", ["a", "bc"], ["c", ""]],
  ["[!ab]*", ["c"], ["a", "bc"]],
  ["[a-cx]1", ["b1", "x1"], ["d1", "-1"]],
  ["[a-]", ["a", "-"], ["b"]],
  ["a[1", ["a[1"], ["a1"]],
  ["*a*b*c", ["abc", "xaybzc", "aabbcc"], ["acb", "abcd"]],
  ["sub/*", ["sub/a"], ["a", "sub/deep/a", "sub"]],
  ["./sub//a", ["sub/a"], ["a"]],
  ["**", ["a", "b/c/d"], []],
  ["**/a", ["a", "b/a", "b/c/a"], ["b/c", "ba"]],
  ["sub/**", ["sub/a", "sub/b/c"], ["a", "su/a"]],
  ["**/deep/**/*.csv", ["deep/a.csv", "x/deep/y/z/a.csv", "deep/deep/a.csv"], ["a.csv", "deep/a"]],
  ["s**/c", ["sub/c", "s/c"], ["sub/x/c"]],
  ["", [], ["a", ""]],
];
for (const [pattern, matching, others] of cases) {
  Deno.test(`PathPattern: ${pattern || "nothing"}`, () => {
    for (const path of matching) assert.ok(matches(pattern, path), path);
    for (const path of others) assert.ok(!matches(pattern, path), path);
  });
}

Deno.test("PathPattern finds each directory once, and leaves others out", () => {
  const pattern = new PathPattern("**/a/**/b");
  assert.deepEqual(pattern.start(), [0, 1]);
  assert.deepEqual(pattern.within(pattern.start(), "a").sort(), [0, 1, 2, 3]);
  assert.deepEqual(new PathPattern("sub/*").within([0], "other"), []);
});

Deno.test("PathPattern takes no time that grows with the number of stars", () => {
  assert.ok(!matches(`${"*a".repeat(1000)}b`, "a".repeat(255)));
});
