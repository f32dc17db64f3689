import assert from "node:assert/strict";
import { SqlError } from "../errors.ts";
import { mapStatement } from "../sql/planner/nodes.ts";
import { bind, explainLines, FULL_EFFORT, LongStatement, parse } from "../sql/mod.ts";
import { FakeCatalogue } from "../sql/binder/fake-catalogue.ts";
import { isOpen, type PostedPlan, treeOf, unpackPlan } from "../engine/packed-plan.ts";
import { type Answers, Planner, type PlannerOptions, type Question, type StatementOrder } from "./planner.ts";
import { type Planned, planOfRun, planText } from "./planning.ts";
import { StatementCache } from "./statements.ts";

const WORKER = new URL("../workers/planner.ts", import.meta.url);
const NOW = 1_700_000_000_000_000n;

const catalogue = new FakeCatalogue();
const context = {
  catalogue,
  parameterTypes: [],
  importRoot: "/",
  nowMicros: NOW,
  user: "admin",
  parquetSchema: () => ({ columns: [], leftOut: [] }),
  effort: FULL_EFFORT,
};
for (
  const table of [
    "create table t (ts timestamp, s symbol, a long, b double) timestamp(ts) partition by day",
    "create table u (ts timestamp, a long) timestamp(ts)",
  ]
) catalogue.apply(bind(parse(table), context).statement);

function answer(question: Question): Answers[keyof Answers] {
  switch (question.kind) {
    case "table":
      return catalogue.table(question.name)?.schema;
    case "tables":
      return catalogue.tables().map(({ schema }) => schema);
    case "facts":
      return { rowCount: 0, timestampMin: null, timestampMax: null };
    case "marks":
      return {
        marks: question.scans.map(({ tableId }) => [`table ${tableId}`]),
        sources: question.scans.map(({ tableId }) => ({
          tableId,
          version: 0,
          rowCount: 0,
          sorted: true,
          directory: "/t1",
          segments: [],
          dictionaries: [],
        })),
        spills: true,
      };
    case "metadata": {
      const { columns } = question.node;
      return { node: "values", rows: [], columns, timestamp: -1, order: "none" };
    }
    case "call":
      return true;
  }
}

const order = (text: string, more: Partial<StatementOrder> = {}): StatementOrder => ({
  text,
  parameterTypes: [],
  values: [],
  user: "admin",
  nowMicros: NOW,
  schemaVersion: 0,
  ...more,
});

/** Also returns the log messages. */
async function withPlanner(
  options: Partial<PlannerOptions>,
  test: (planner: Planner, logged: string[]) => Promise<void>,
): Promise<void> {
  const logged: string[] = [];
  const planner = new Planner({
    workerUrl: WORKER,
    importRoot: "/",
    words: FULL_EFFORT.words,
    tokens: FULL_EFFORT.tokens,
    expressions: FULL_EFFORT.expressions,
    timeoutMs: 0,
    answer,
    log: (level, message) => logged.push(`${level} ${message}`),
    ...options,
  });
  try {
    await test(planner, logged);
  } finally {
    planner.close();
  }
}

const list = (count: number, item: (k: number) => string, separator = ", ") =>
  Array.from({ length: count }, (_, k) => item(k)).join(separator);

/** Long statements of several kinds. */
const LONG = [
  `select ${list(1000, (k) => `a + ${k} c${k}`)} from t where ${list(500, (k) => `a != ${k}`, " and ")}`,
  `select a from t where ${list(300, (k) => `(s = 's${k}' and b > ${k})`, " or ")}`,
  `select case ${list(500, (k) => `when a = ${k} then 'x${k}'`, " ")} else s end from t`,
  `with ${list(200, (k) => `c${k} as (select a + ${k} a from t)`)} select * from c199`,
  list(200, (k) => `select a + ${k}, s from t`, " union all "),
  `select s, ${list(500, (k) => `sum(a + ${k})`)} from t group by s`,
  `explain select ${list(500, (k) => `a + ${k}`)} from t`,
  `insert into u values ${list(2000, (k) => `('2024-01-01T00:00:00', ${k})`)}`,
  `insert into t values ${list(2000, (k) => `('2024-01-01T00:00:00', 's${k}', ${k}, 1.5)`)}`,
  `update t set b = ${list(400, (k) => `b + ${k}`, " + ")}`,
  `create table n as (select ${list(300, (k) => `a c${k}`)} from t)`,
  `drop table ${"/* long */ ".repeat(10_000)} t`,
  // Mistakes at the end of the text.
  `select ${list(500, () => "a")}, nothing from t`,
  `select ${list(500, () => "a")} from t where where`,
  `select ${list(500, () => "a")} from t join w on a = a`,
  `select ${list(500, () => "a")}, 'not closed from t`,
  `select ${"(".repeat(1000)}`,
];

function textOf(value: unknown): string {
  if (value instanceof SqlError) return `${value.sqlState} at ${value.position}: ${value.message}`;
  return JSON.stringify(value, (_, part) => typeof part === "bigint" ? `${part}n` : part);
}

const unpacked = (planned: Planned<PostedPlan>): Planned => ({
  ...planned,
  bound: mapStatement(planned.bound, unpackPlan),
});

Deno.test("the planner gives the same results as main, and errors at the same positions", async () => {
  await withPlanner({}, async (planner) => {
    for (const text of LONG) {
      let here: unknown, there: unknown;
      try {
        here = planText(text, context);
      } catch (error) {
        here = error;
      }
      try {
        there = unpacked(await planner.want("statement", order(text)));
      } catch (error) {
        there = error;
      }
      // Compared as texts, because deep trees are too deep for deepEqual.
      assert.equal(textOf(there), textOf(here), text.slice(0, 60));
    }
  });
});

Deno.test("the planner fills in values that are known only at run time", async () => {
  await withPlanner({}, async (planner) => {
    const text = `select ${list(500, (k) => `a + $1 + ${k}`)} from t where ts > now()`;
    const given = order(text, { parameterTypes: ["LONG"] });
    const planned = await planner.want("statement", given);
    assert.deepEqual(planned.parameters, ["LONG"]);
    const { bound } = planned;
    assert.ok(bound.plan !== undefined && treeOf(bound.plan) === undefined && isOpen(bound.plan));
    const values = [5n];
    const plan = unpackPlan(await planner.want("plan", { ...given, values }));
    const here = planText(text, { ...context, parameterTypes: ["LONG"] });
    assert.ok(here.bound.plan !== undefined);
    assert.deepEqual(plan, planOfRun(here.bound.plan, here, { values, nowMicros: () => NOW, user: "admin" }));
    const lines = explainLines(await planner.want("explain", order(`explain ${LONG[0]}`)));
    assert.match(lines.at(-1)!, /a != 499|where/);
    assert.match(lines.join("\n"), /Scan t.*\[table 1/);
    const metadata = await planner.want("plan", order(`select ${list(500, (k) => `id + ${k}`)} from tables()`));
    assert.doesNotMatch(textOf(unpackPlan(metadata)), /metadata/);
    assert.deepEqual(await planner.bounds(" select 1; select ';' "), Uint32Array.of(1, 9, 11, 22));
  });
});

Deno.test("long statements go to the planner, others do not", async () => {
  const longOnes: string[] = [];
  const cache = new StatementCache({
    quick: ({ text }) => {
      if (text.startsWith("wordy")) throw new LongStatement();
      return planText("select 1", context);
    },
    long: ({ text }) => {
      longOnes.push(text);
      return Promise.resolve(planText("select 1", context));
    },
    schemaVersion: () => 0,
  }, 10);
  const identity = { name: "admin" };
  const texts = ["short", "wordy", `${"x".repeat(100_000)}`];
  for (const text of texts) await cache.get(text, [], { identity });
  assert.deepEqual(longOnes, texts.slice(1));
  // Cached after the first time, because its text is not too long.
  assert.ok(!(cache.get("wordy", [], { identity }) instanceof Promise));
  assert.ok(cache.get(texts[2], [], { identity }) instanceof Promise);
});

Deno.test("the statement cache is bounded by the length of its texts, too", async () => {
  const planning = { quick: () => planText("select 1", context), long: () => Promise.reject(), schemaVersion: () => 0 };
  const cache = new StatementCache(planning, 1_000);
  const identity = { name: "admin", groups: [] };
  const text = (k: number) => `${k} ${"x".repeat(4_000)}`;
  for (let k = 0; k < 500; k++) await cache.get(text(k), [], { identity });
  assert.ok(cache.size > 200 && cache.size < 300, `${cache.size} statements`);
  const last = cache.get(text(499), [], { identity });
  assert.equal(cache.get(text(499), [], { identity }), last);
  assert.equal(cache.size, 261);
});

Deno.test("the planner refuses statements beyond its limits", async () => {
  await withPlanner({ words: 2_002, expressions: 500 }, async (planner) => {
    const text = `select ${list(400, (k) => `a + ${k}`)} from t`;
    await assert.rejects(planner.want("statement", order(text)), {
      message: /more than 500 expressions, at most 500/,
      position: text.indexOf("a + 249"),
    });
    const longer = `select ${list(1_100, () => "a")} from t`;
    await assert.rejects(planner.want("statement", order(longer)), {
      message: /2202 words .*at most 2002/,
      position: longer.indexOf("a,") + 3 * 1_000 + 1,
    });
  });
});

/** A thread that handles orders by the code in their text. */
const script = (code: string) =>
  new URL(
    `data:application/javascript,${
      encodeURIComponent(`
        let control;
        self.onmessage = ({ data }) => {
          if (data.kind === "start") return control = new Int32Array(data.control);
          const { text } = data.order;
          ${code}
        };
      `)
    }`,
  );
const ODD = script(`
  if (text === "crash") throw new Error("broken");
  if (text === "hang") return;
  if (text === "until cancelled") {
    while (Atomics.load(control, 0) === 0) Atomics.wait(control, 1, 0, 5);
    return self.postMessage({ kind: "failed", error: { name: "SqlError", message: "cancelled", position: 0, sqlState: "57014" } });
  }
  self.postMessage({ kind: "done", value: text });
`);

Deno.test("a failing thread ends only its own statement", async () => {
  let unhandled = 0;
  await withPlanner({ workerUrl: ODD, onUnhandledError: () => unhandled++ }, async (planner, logged) => {
    const crash = planner.bounds("crash");
    const behind = planner.bounds("next");
    await assert.rejects(crash, { name: "SqlError", sqlState: "XX000" });
    assert.equal(await behind as unknown, "next");
    assert.match(logged.join(), /CRITICAL .*broken/);
    assert.equal(unhandled, 1);
  });
  await withPlanner({ workerUrl: script("} this is no code {") }, async (planner) => {
    for (let k = 0; k < 2; k++) await assert.rejects(planner.bounds("text"), { sqlState: "XX000" });
  });
});

Deno.test("a statement is abandoned when it is cancelled or out of time, even while it waits for the thread", async () => {
  await withPlanner({ workerUrl: ODD }, async (planner) => {
    const controller = new AbortController();
    const running = planner.bounds("until cancelled", { signal: controller.signal });
    const waiting = planner.bounds("until cancelled", { timeoutMs: 1 });
    await assert.rejects(waiting, { name: "SqlError", sqlState: "57014", message: /time-out of 1 ms/ });
    controller.abort();
    await assert.rejects(running, { name: "SqlError", sqlState: "57014" });
    await assert.rejects(planner.bounds("until cancelled", { timeoutMs: 1 }), { sqlState: "57014" });
    assert.equal(await planner.bounds("next") as unknown, "next");
  });
  await withPlanner({ workerUrl: ODD, timeoutMs: 1 }, async (planner) => {
    await assert.rejects(planner.bounds("until cancelled"), { message: /time-out of 1 ms/ });
  });
});

Deno.test("a thread that does not stop is replaced", async () => {
  await withPlanner({ workerUrl: ODD, stuckMs: 1 }, async (planner, logged) => {
    await assert.rejects(planner.bounds("hang", { timeoutMs: 1 }), { sqlState: "57014" });
    assert.equal(await planner.bounds("next") as unknown, "next");
    assert.match(logged.join(), /does not stop/);
  });
});

Deno.test("shorter statements go first, and the idle thread ends", async () => {
  await withPlanner({ workerUrl: ODD, idleMs: 1 }, async (planner) => {
    assert.equal(planner.isRunning, false);
    const ended: unknown[] = [];
    const add = (text: string) => planner.bounds(text).then((value) => ended.push(value));
    await Promise.all([add("first"), add("the longest of all"), add("longer"), add("short")]);
    assert.deepEqual(ended, ["first", "short", "longer", "the longest of all"]);
    while (planner.isRunning) await new Promise((resolve) => setTimeout(resolve, 1));
    assert.equal(await planner.bounds("again") as unknown, "again");
  });
});

Deno.test("closing the planner ends all statements that wait for it", async () => {
  await withPlanner({ workerUrl: ODD }, async (planner) => {
    const statements = [planner.bounds("hang"), planner.bounds("next")];
    const ended = Promise.allSettled(statements);
    planner.close();
    for (const { status } of await ended) assert.equal(status, "rejected");
    assert.throws(() => planner.bounds("late"), { sqlState: "57014" });
  });
});
