/** Checks required before submitting a change: format, lint, types, generated files, import directions, tests. */
import { deno } from "./flags.ts";

const STEPS: [string, string[]][] = [
  ["format", ["fmt", "--check"]],
  ["lint", ["lint"]],
  ["types", ["task", "check"]],
  ["generated files", ["task", "docs", "--check"]],
  ["lock file of the start", ["task", "lock", "--check"]],
  ["tests", ["task", "test"]],
];

const failed: string[] = [];
for (const [name, args] of STEPS) if (await deno(...args) !== 0) failed.push(name);
console.log(failed.length === 0 ? "ok" : `not ok: ${failed.join(", ")}`);
Deno.exit(failed.length === 0 ? 0 : 1);
