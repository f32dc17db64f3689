/** Go's pgx against the real server; its program is in `tests/clients/pg/go/`. */
import assert from "node:assert/strict";
import { fromFileUrl } from "../paths.ts";
import { startServer } from "../server.ts";

const isInstalled = await hasGo();

async function hasGo(): Promise<boolean> {
  // `go --version` is no command.
  const run = async () => await new Deno.Command("go", { args: ["version"], stdout: "null", stderr: "null" }).output();
  const starts = await run().then(({ success }) => success, () => false);
  if (!starts) console.log("skipped: pgx: go is not installed");
  return starts;
}

/** What the program prints for each of pgx's ways to send a query. */
const OF_MODE = `
INSERT 0 1
rows 5
true BTC 1.5 1099511627776 12.34 [1 2.5] 11111111-2222-3333-4444-555555555555
true true true true true true
found 1
size 7
true 42703 8
true
`;
const MODES = ["cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"];

Deno.test({ name: "pgx", ignore: !isInstalled }, async () => {
  await using server = await startServer();
  const program = await Deno.makeTempFile({ prefix: "pgx-" });
  const run = async (name: string, ...args: string[]) => {
    const cwd = fromFileUrl("./clients/pg/go/");
    const { stdout, stderr } = await new Deno.Command(name, { args, cwd, stdout: "piped", stderr: "piped" }).output();
    return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  };
  try {
    const built = await run("go", "build", "-o", program);
    assert.equal(built.replaceAll(/^go: downloading .*\n/gm, ""), "");
    const printed = await run(program, String(server.pgPort));
    assert.equal(printed, `${MODES.map((mode) => mode + OF_MODE).join("")}pool 5\n`);
  } finally {
    await Deno.remove(program);
  }
});
