/**
 * Runs every recorded case against the server, over HTTP and PG, on the main thread and on other threads.
 * `conformance/gaps.json` lists the cases that fail (file → lines); a case that passes must be removed from the list. Those listed are kept on
 * purpose: `join_inner_cross` 137 sorts by `c.id`, but the recorded answer is sorted by `d.id` because a result column is named
 * `id`. `views` 232 is one before the name that is not known, unlike all others. `update` 210 ends after `=`, and its recorded position is 0, while all other truncated statements have a position inside
 * the statement. `meta_functions` 113 counts the transactions of a table, here those of the whole log; `meta_functions` 162 lists
 * all columns of query_activity(), which has more here.
 */
import assert from "node:assert/strict";
import { FULL } from "../src/testing.ts";
import { type Case, cleanup, difference, parseCases, type Reply } from "./conformance.ts";
import { PgRunner, shown } from "./conformance-pg.ts";
import { fromFileUrl } from "./paths.ts";
import { startServer, type TestServer } from "./server.ts";

const folder = fromFileUrl("./conformance/");
/** Failing cases: lines by file. */
type Gaps = Record<string, number[]>;
const gaps = JSON.parse(Deno.readTextFileSync(`${folder}gaps.json`)) as Gaps;
const files = [...Deno.readDirSync(folder)].map((entry) => entry.name).filter((name) => name.endsWith(".test")).sort();

/** Small queries run on the main thread, or other threads plan and run all queries. */
const DIRECT = {}, BY_THREADS = { SVC_QUERY_DIRECT_ROWS_MAX: "-1", SVC_QUERY_DIRECT_WORDS_MAX: "0" };

/** At full length all files run in each way. Otherwise two ways have a third of the files: what they combine has all files in another way. */
const third = (rest: number, and: Gaps = {}) => files.filter((file, k) => FULL || k % 3 === rest || file in and);

type Run = (c: Pick<Case, "sql" | "expected">) => Promise<Reply>;

/** Each file is a step that runs its cases in order, and fails unless exactly its gaps fail. */
async function runFiles(
  t: Deno.TestContext,
  run: Run,
  wireGaps: Gaps = {},
  shown = (c: Case) => c,
  some = files,
): Promise<void> {
  for (const file of some) {
    await t.step(file, async () => {
      const cases = parseCases(await Deno.readTextFile(folder + file)).map(shown);
      const known = wireGaps[file] ?? gaps[file] ?? [];
      const drops = cleanup(cases).map((sql) => ({ sql, expected: [] }));
      for (const drop of drops) await run(drop);
      const failed: number[] = [];
      const report: string[] = [];
      for (const c of cases) {
        const got = difference(c, await run(c));
        if (!got) continue;
        failed.push(c.line);
        if (known.includes(c.line)) continue;
        const expected = c.expected.slice(0, 8).join("\n           ");
        const found = got.slice(0, 8).join("\n           ");
        report.push(`${file}:${c.line}: ${c.title}\n  ${c.sql}\n  expected ${expected}\n  got      ${found}`);
      }
      for (const drop of drops) await run(drop);
      const message = `${file}: the cases that fail are not those in gaps.json\n${report.join("\n")}`;
      assert.deepEqual(failed, known, message);
    });
  }
}

async function startWithData(env: Record<string, string>): Promise<TestServer> {
  // A case is about rows that no checkpoint has stored yet.
  const server = await startServer({ env: { SVC_CAIRO_CHECKPOINT_INTERVAL: "1h", ...env } });
  for (const entry of Deno.readDirSync(`${folder}data`)) {
    Deno.copyFileSync(`${folder}data/${entry.name}`, `${server.root}/import/${entry.name}`);
  }
  return server;
}

for (const [title, env] of [["on the main thread", DIRECT], ["by other threads", BY_THREADS]] as const) {
  Deno.test(`conformance over HTTP, ${title}`, async (t) => {
    await using server = await startWithData(env);
    await runFiles(t, ({ sql }) => server.exec(sql), {}, undefined, env === DIRECT ? files : third(1));
  });
}

/**
 * These replace the gaps of a file: over PG a simple query may contain several statements, and an empty one is no
 * error.
 */
const SIMPLE_GAPS: Gaps = { "select_shapes.test": [243, 273], "update.test": [] };
const EXTENDED_GAPS: Gaps = { "select_shapes.test": [273], "update.test": [] };

for (
  const [title, env, wireGaps] of [["simple", DIRECT, SIMPLE_GAPS], ["extended", BY_THREADS, EXTENDED_GAPS]] as const
) {
  Deno.test(`conformance over PG, ${title} queries`, async (t) => {
    await using server = await startWithData(env);
    const runner = await PgRunner.connect(server.pgPort, title === "extended");
    try {
      await runFiles(t, (c) => runner.run(c), wireGaps, shown, title === "extended" ? files : third(2, wireGaps));
    } finally {
      await runner.close();
    }
  });
}

Deno.test("at least nine in ten of the recorded cases pass", () => {
  const all = files.reduce((sum, file) => sum + parseCases(Deno.readTextFileSync(folder + file)).length, 0);
  const open = Object.values(gaps).reduce((sum, lines) => sum + lines.length, 0);
  assert.ok(open <= all / 10, `${open} of ${all} are open`);
});
