/** EXPLAIN ANALYZE executes the statement and shows measurements of each operator. */
import assert from "node:assert/strict";
import { startServer } from "./server.ts";
import { pgClient } from "./pg-client.ts";

const ROWS = 300_000;
const GAVE = (rows: number) => `gave ${rows} rows, \\d+ \\w+; time [\\d.]+ ms, own [\\d.]+ ms`;

Deno.test("EXPLAIN ANALYZE", async (t) => {
  await using server = await startServer({
    env: { SVC_PG_READONLY_USER_ENABLED: "true", SVC_METRICS_ENABLED: "true" },
  });
  const run = async (statement: string) => {
    const { error, dataset } = await server.exec(statement);
    assert.equal(error, undefined, statement);
    return dataset ?? [];
  };
  const analyze = async (statement: string) =>
    (await run(`explain analyze ${statement}`)).map(([line]) => String(line)).join("\n");
  await run(
    `create table t as (select x, rnd_symbol('a', 'b') s, x::double d, x::string t, timestamp_sequence(0, 1000000) ts
     from long_sequence(${ROWS})) timestamp(ts) partition by day`,
  );
  await run("create table u (x long, s symbol)");

  const plans: [statement: string, ...lines: (string | RegExp)[]][] = [
    [
      "select s, max(d) from t where x <= 1000 group by s order by s",
      new RegExp(
        `^Sort s \\[keeps all rows; in row format if the memory allows; spill: sorted runs; chose rows by number; ${
          GAVE(2)
        }; peak memory \\d+ KiB\\]`,
      ),
      new RegExp(`Aggregate max\\(d\\) \\[.*${GAVE(2)}; peak memory`),
      new RegExp(
        `Scan t: .*rows ${ROWS};.*read \\d+ rows, \\d+ KiB; in pipeline 2; gave 1000 rows; done by the operator above`,
      ),
      /^Execution time [\d.]+ ms, peak memory \d+ KiB$/m,
    ],
    [
      "select a.x from t a join t b on a.x = b.x where a.d > 10",
      new RegExp(`Project x \\[.*${GAVE(ROWS - 10)}`),
      new RegExp(`Inner join on x = x \\[.*gave ${ROWS - 10} pairs; read by the operator above; peak memory \\d+`),
      new RegExp(`Scan t: x, d \\[.*in pipeline 2; gave ${ROWS - 10} rows; done by the operator above`),
      /Inner join .*dense or hash index, by the range of the right keys; spill: hash partitions; chose dense index;/,
      new RegExp(`Scan t: x \\[.*read ${ROWS} rows.*${GAVE(ROWS)}`),
    ],
    [
      "select 1 union all select 2",
      /^Union all \[gave 2 rows/,
      /Project 1 \[.*gave 1 rows/,
      /Project 2 \[.*gave 1 rows/,
    ],
    [
      "select * from t latest on ts partition by s",
      /^Latest on ts \[pipeline 1.* gave 2 rows/,
      /Scan t.*in pipeline 1; gave \d+ rows/,
    ],
    [
      "select b.s, count() from t a join t b on a.x = b.x where a.d > 10",
      /Aggregate count\(\) \[dense or hash table, by the dictionaries of its keys; spill: hash partitions; chose dense table;/,
    ],
    [
      "select a.x from t a join t b on a.d = b.d and a.s = b.s",
      /Inner join .*keys by values, symbols; .*; chose hash index, symbols by codes;/,
    ],
    [
      "select upper(b.s), sum(a.d) from t a join t b on a.x = b.x",
      /between kernels or once for each symbol, by the dictionaries: upper; .*chose keys and arguments in the kernel;/,
    ],
    ["select count(distinct x) from t where d > 10", new RegExp(`Scan t.*in pipeline 2; gave ${ROWS - 10} rows`)],
    [
      "select x * 2 y from t where d > 10 order by y desc limit 5",
      /finds rows by their keys, .*; chose \w+ threads?;/,
      new RegExp(`Project .*in pipeline 1; gave ${ROWS - 10} rows`),
      new RegExp(`Scan t: x, d .*in pipeline 1; gave ${ROWS - 10} rows`),
    ],
    ["select * from long_sequence(1000000) limit 3", /gave 3 rows/],
    [
      "select * from t order by d desc",
      /^Sort d desc \[keeps all rows; in row format if the memory allows; spill: sorted runs; chose rows in row format; /,
    ],
    ["select x from u order by x", /^Sort x \[keeps all rows; spill: sorted runs; chose rows by number; /],
    [
      "select s, string_agg(t, ',') from t where x < 10 group by s",
      /Aggregate string_agg.*\[.*dense or hash table, by the dictionaries of its keys; spill: hash partitions; chose dense table; gave/,
    ],
    // Conditions that cannot be merged: those of each line are tested by an operator of their own.
    [
      "select sum(d) from t where x > 1000 and rnd_double() >= 0.5",
      /Filter .*; gave 1[45]\d{4} rows; done by the operator above/,
      new RegExp(`Scan t: x, d \\[.*; gave ${ROWS - 1000} rows`),
    ],
    // Nothing is read.
    ["select a.x from t a join u on a.x = u.x", /Inner join .*gave 0 pairs; .*\n +Scan t: x .*gave 0 rows/],
    ["select ts, sum(d) from t where ts > '2050' sample by 1h", /Scan t: .*gave 0 rows; done by the operator above/],
    // No row passes.
    ...[
      "select s, x, count() from t where d * x = -1 group by s, x",
      "select s, first(t) from t where d * x = -1 group by s",
      "select string_agg(t, ',') from t where d * x = -1",
      "select s, sum(d) from t where d * x = -1 order by sum(d) limit 3",
      "select x, d from t where d * x = -1 order by d limit 3",
      "select count_distinct(x) from t where d * x = -1",
      "select distinct s, x from t where d * x = -1",
      "select ts, sum(d) from t where d * x = -1 sample by 1h",
      "select * from t where d * x = -1 latest on ts partition by s",
      "select ts, row_number() over (partition by s) from t where d * x = -1",
    ].map((statement): [string, RegExp] => [statement, /Scan t.*; gave 0 rows[;,]/]),
    ["select count() from t", /From statistics: count\(\) \[gave 1 rows, 8 B/],
  ];
  for (const [statement, ...lines] of plans) {
    await t.step(statement, async () => {
      const shown = await analyze(statement);
      for (const line of lines) assert.match(shown, new RegExp(line, "m"));
    });
  }

  await t.step("EXPLAIN of CREATE TABLE AS prunes by the clock, as the statement does", async () => {
    const lines = await run("explain create table v as (select x from t where ts > dateadd('d', 1, now()))");
    assert.match(lines.join("\n"), /Scan t: x, ts \[.*segments 0 of/);
  });

  await t.step("gives the plan of EXPLAIN", async () => {
    const statement = "select s, max(d) from t group by s order by s";
    const plain = (await run(`explain ${statement}`)).map(([line]) => String(line).replace(/ \[.*/, ""));
    const analyzed = (await analyze(statement)).split("\n").map((line) => line.replace(/ \[.*/, ""));
    assert.deepEqual(analyzed.slice(0, -1), plain);
  });

  await t.step("executes the statement's changes", async () => {
    assert.match(
      await analyze("insert into u select x, s from t where x <= 10"),
      /^Insert\n.*gave 10 rows(?:.*\n)+Changed 10 rows/,
    );
    assert.match(await analyze("insert into u values (11, 'c'), (12, 'd')"), /Changed 2 rows/);
    assert.match(await analyze("update u set s = 'e' where x > 10"), /^Update\n(?:.*\n)+Changed 2 rows/);
    assert.match(await analyze("delete from u where x <= 9"), /^Delete\n(?:.*\n)+Changed 9 rows/);
    assert.deepEqual(await run("select x, s from u where x > 10"), [[11, "e"], [12, "e"]]);
    assert.deepEqual(await run("select count() from u"), [[3]]);
    assert.match(
      await analyze("create table v as (select s, count() n from t group by s)"),
      /^Create table v\n(?:.*\n)+Changed 2 rows/,
    );
    assert.deepEqual(await run("select sum(n) from v"), [[ROWS]]);
  });

  await t.step("counts as the kind of change that it makes", async () => {
    const connect = async (user: string) => {
      const client = pgClient(server, { user });
      await client.connect();
      return client;
    };
    const reader = await connect("user"), admin = await connect("admin");
    await assert.rejects(reader.query("explain analyze delete from u"), { code: "25006" });
    const { rows, command } = await reader.query("explain analyze select * from u");
    assert.equal(command, "EXPLAIN");
    assert.match(rows[0]["QUERY PLAN"], /gave 3 rows/);
    await admin.query("begin");
    await admin.query("explain analyze delete from u");
    await admin.query("rollback");
    assert.deepEqual(await run("select count() from u"), [[3]]);
    await Promise.all([reader.end(), admin.end()]);
  });

  const refused: [statement: string, error: RegExp, position: number][] = [
    ["explain analyze drop table u", /EXPLAIN ANALYZE of a statement that reads nothing is not supported/, 16],
    ["explain analyze select y from u", /there is no column y/, 23],
  ];
  for (const [statement, error, position] of refused) {
    await t.step(`refuses ${statement}`, async () => {
      const reply = await server.exec(statement);
      assert.match(reply.error!, error);
      assert.equal(reply.position, position);
    });
  }

  await t.step("is told as data by spooled results", async () => {
    const ask = async (query: string) => {
      const body = new URLSearchParams({ query, wait: "20000" });
      return await (await fetch(`${server.http}/api/v1/sql/results`, { method: "POST", body })).json();
    };
    const { plan, dataset } = await ask(
      "explain analyze select s, max(d) from t where x <= 1000 group by s order by s",
    );
    const [sort, aggregate, ...others] = nodesOf(plan.root);
    assert.match(sort.text, /^Sort s/);
    assert.deepEqual([sort.measured.rows, aggregate.measured.rows], [2, 2]);
    assert.ok(sort.measured.nanos >= aggregate.measured.nanos && aggregate.measured.ownNanos > 0);
    const scan = others.find(({ text }) => text.startsWith("Scan t"))!;
    assert.equal(scan.isFused, true);
    assert.ok(scan.measured.rowsRead! > 0 && scan.measured.bytesRead! > 0);
    assert.ok(plan.executionNanos > 0 && plan.memoryPeakBytes > 0);
    const heads = dataset.map(([line]: [string]) => line.trim().split(" [")[0]);
    for (const { text } of nodesOf(plan.root)) assert.ok(heads.includes(text), text);
    const planned = await ask("explain select count() from t");
    assert.equal(planned.plan.root.measured, undefined);
    const update = await ask("explain analyze update t set d = 1 where x = 1");
    assert.equal(update.plan.changedRows, 1);
    const long = await ask(`explain analyze select x from t where x in (${Array.from({ length: 3000 }, (_, k) => k)})`);
    assert.equal(nodesOf(long.plan.root)[0].measured.rows, 2999);
  });

  await t.step("as JSON, it is one text with PostgreSQL's names", async () => {
    const statement = "select s, max(d) from t where x <= 1000 group by s order by s";
    const jsonOf = async (options: string) => {
      const dataset = await run(`explain (${options}) ${statement}`);
      assert.equal(dataset.length, 1);
      return JSON.parse(String(dataset[0]![0]))[0];
    };
    const planned = await jsonOf("format json");
    assert.equal(planned.Plan["Node Type"], "Sort s");
    assert.equal(planned.Plan["Actual Rows"], undefined);
    assert.equal(planned["Execution Time"], undefined);
    const [project] = planned.Plan.Plans, [aggregate] = project.Plans, [scan] = aggregate.Plans;
    assert.equal(aggregate["Node Type"], "Aggregate max(d)");
    assert.deepEqual(aggregate.Details, ["by s"]);
    assert.match(scan["Node Type"], /^Scan t: /);
    assert.equal(scan.Plans, undefined);
    assert.ok(scan.Notes.includes(`rows ${ROWS}`));
    const measured = await jsonOf("analyze, verbose, format json");
    assert.equal(measured.Plan["Actual Rows"], 2);
    assert.ok(measured.Plan["Actual Total Time"] >= measured.Plan.Plans[0]["Actual Total Time"]);
    assert.ok(measured["Execution Time"] > 0 && measured["Peak Memory Bytes"] > 0);
  });

  await t.step("leaves no memory behind, also of a statement that fails", async () => {
    const held = async () => {
      const text = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
      const [, bytes] = /^\w*memory_tag_bytes\{tag="query"\} (\d+)$/m.exec(text) ?? assert.fail(text);
      return Number(bytes);
    };
    for (let k = 0; k < 20; k++) {
      await analyze("select s, max(d) from t group by s");
      const failed = await server.exec("explain analyze insert into u (x) select t || 'x' from t");
      assert.match(failed.error ?? "", /is not a LONG/);
    }
    // Statements keep some memory for their next run, up to ten seconds.
    let bytes = await held();
    for (const deadline = Date.now() + 30_000; bytes > 0 && Date.now() < deadline; bytes = await held()) {
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    assert.equal(bytes, 0);
  });
});

interface PlanNode {
  text: string;
  isFused: boolean;
  measured: { rows: number; nanos: number; ownNanos: number; rowsRead?: number; bytesRead?: number };
  inputs: PlanNode[];
}

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...node.inputs.flatMap(nodesOf)];
