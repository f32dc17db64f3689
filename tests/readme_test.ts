/**
 * README.md, run from top to bottom against a new root: each `sql` block through psql, and the `text` block behind it is what
 * comes out; the curl line likewise.
 *
 *     deno run -A tests/readme_test.ts      writes the outputs anew
 */
import assert from "node:assert/strict";
import { fromFileUrl } from "./paths.ts";
import { startServer, type TestServer } from "./server.ts";

const PATH = fromFileUrl("../README.md");
const BLOCK = /```(\w+)\n([\s\S]*?)```/g;

async function outputs(readme: string, server: TestServer): Promise<string> {
  let lastSql: string | undefined;
  let lastShell = "";
  const parts: string[] = [];
  let at = 0;
  for (const match of readme.matchAll(BLOCK)) {
    const [whole, language, body] = match;
    let written = body;
    if (language === "sql") {
      if (lastSql !== undefined) await psql(server, lastSql);
      lastSql = body;
    } else if (language === "sh") lastShell = body;
    else if (language === "text") {
      written = await psql(server, lastSql!);
      lastSql = undefined;
    } else if (language === "json") {
      const query = /query=([^"]*)/.exec(lastShell)![1];
      written = await (await fetch(`${server.http}/exec?query=${encodeURIComponent(query)}`)).text() + "\n";
    }
    parts.push(readme.slice(at, match.index), `\`\`\`${language}\n${written}\`\`\``);
    at = match.index + whole.length;
  }
  return parts.join("") + readme.slice(at);
}

/** The rows of the last statement that gives some. */
async function psql(server: TestServer, sql: string): Promise<string> {
  const child = new Deno.Command("psql", {
    args: [
      "-X",
      "-q",
      "-h",
      "127.0.0.1",
      "-p",
      String(server.pgPort),
      "-U",
      "admin",
      "-d",
      "qdb",
      "-v",
      "ON_ERROR_STOP=1",
      "-f",
      "-",
    ],
    env: { PGPASSWORD: "quest" },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(sql));
  await writer.close();
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  if (code !== 0) throw new Error(`${sql}\n${decoder.decode(stderr)}`);
  return decoder.decode(stdout).trimEnd() + "\n";
}

const hasPsql = await new Deno.Command("psql", { args: ["--version"], stdout: "null", stderr: "null" }).output().then(
  () => true,
  () => false,
);
if (!hasPsql) console.log("skipped: README.md, as psql is not installed");

Deno.test({
  name: "README.md says what happens",
  ignore: !hasPsql,
  fn: async () => {
    await using server = await startServer();
    const readme = Deno.readTextFileSync(PATH).replaceAll("\r\n", "\n");
    assert.equal(await outputs(readme, server), readme);
  },
});

if (import.meta.main) {
  await using server = await startServer();
  Deno.writeTextFileSync(PATH, await outputs(Deno.readTextFileSync(PATH), server));
}
