/** Materialized views have the rows of their queries: after random changes of the base table, restarts and kills, and in each way of refreshing. */
import assert from "node:assert/strict";
import { FULL, SEED } from "../src/testing.ts";
import { randomOf } from "./faults/harness.ts";
import { until } from "./programs.ts";
import { startServer, type TestServer } from "./server.ts";

async function run(server: TestServer, ...statements: string[]): Promise<void> {
  for (const sql of statements) assert.equal((await server.exec(sql)).error, undefined, sql);
}

async function rowsOf(server: TestServer, sql: string): Promise<unknown[][]> {
  const { dataset, error } = await server.exec(sql);
  assert.equal(error, undefined, sql);
  return dataset as unknown[][];
}

/** Waits until the view has all changes of its base. */
async function refreshed(server: TestServer, view: string): Promise<void> {
  const sql = `select view_status, refresh_base_table_txn, base_table_txn, invalidation_reason from materialized_views()
    where view_name = '${view}'`;
  await until(`${view} is up to date`, async () => {
    const [[status, refreshed, base, reason]] = await rowsOf(server, sql) as string[][];
    assert.equal(reason, null);
    return status === "valid" && refreshed === base;
  });
}

async function assertSameRows(server: TestServer, view: string, query: string): Promise<void> {
  await refreshed(server, view);
  const order = "order by ts, 2";
  assert.deepEqual(await rowsOf(server, `${view} ${order}`), await rowsOf(server, `(${query}) ${order}`), view);
}

async function refused(server: TestServer, sql: string, position: number, message: RegExp): Promise<void> {
  const reply = await server.exec(sql);
  assert.match(`${reply.error ?? "no error"}`, message, `${sql}: ${reply.error}, ${reply.position}`);
  assert.equal(reply.position, position, sql);
}

/** All sums are of whole numbers, so that they do not depend on the order of rows. */
const VIEWS: Record<string, string> = {
  hourly: "select ts, sym, count() n, sum(v) s, max(v) hi, last(v) latest from base sample by 1h",
  odd: "select ts, count() n, sum(v) s from base sample by 7h align to calendar with offset '00:20'",
  zoned: "select ts, count() n, sum(v) s from base sample by 1d align to calendar time zone 'Europe/Paris'",
  weekly: "select ts, sum(v) s from base where sym != 'b' sample by 1w",
  monthly: "select ts, count() n from base sample by 1M",
  nested: "select ts, max(s) s from (select ts, sym, sum(v) s from base sample by 10m) sample by 2h",
  unaligned: "select ts, sum(s) s from (select ts, sum(v) s from base sample by 1d) sample by 7h",
  joined: "select b.ts, l.name, sum(b.v) s from base b join look l on b.sym = l.sym sample by 1d",
  daily: "select ts, sum(n) n, max(hi) hi from hourly sample by 1d",
};

const [STEPS, STEPS_WITH_PERIOD] = FULL ? [60, 40] : [30, 25];

Deno.test("materialized views follow random changes of their base", async () => {
  const random = randomOf(SEED);
  console.log(`SEED=${SEED}`);
  const root = await Deno.makeTempDir({ prefix: "sundial-" }), int = (below: number) => Math.floor(random() * below);
  for (const type of (Deno.env.get("TYPES") ?? "timestamp,timestamp_ns").split(",")) {
    let server = await startServer({ root });
    try {
      await run(
        server,
        `create table base (ts ${type}, sym symbol, v long) timestamp(ts) partition by day wal`,
        "create table look (sym symbol, name symbol)",
        "insert into look values ('a', 'x'), ('b', 'y'), ('c', 'x')",
      );
      const made = new Set<string>();
      const make = async (view: string) => {
        if (made.has(view) || (view === "daily" && !made.has("hourly"))) return;
        made.add(view);
        const base = view === "joined" ? "with base base" : "";
        await run(server, `create materialized view ${view} ${base} as (${VIEWS[view]}) partition by month`);
      };
      const month = () => `2024-0${3 + int(2)}`, day = () => `${month()}-${String(1 + int(28)).padStart(2, "0")}`;
      const rows = () => {
        const first = `${day()}T${String(int(24)).padStart(2, "0")}:${String(int(60)).padStart(2, "0")}`;
        return `select timestamp_sequence('${first}'::${type}, ${1 + int(3_000)}000000L${
          type === "timestamp_ns" ? " * 1000" : ""
        }) ts, ('abcd'::string)::string s, x from long_sequence(${1 + int(400)})`;
      };
      for (let step = 0; step < STEPS; step++) {
        const k = int(20);
        if (k < 12) {
          const text = `select ts, case when x % 3 = 0 then 'a' when x % 3 = 1 then 'b' else 'c' end::symbol, x % ${
            2 + int(50)
          } from (${rows()})`;
          await run(server, `insert into base ${text}`);
        } else if (k < 14) await run(server, `update base set v = v + 1 where ts in '${day()}'`);
        else if (k < 15) await run(server, `update base set sym = 'd' where v = ${int(20)}`);
        else if (k < 17) await run(server, `delete from base where ts in '${day()}T1'`.replace("T1'", "T12'"));
        else if (k < 18) await run(server, "checkpoint create", "checkpoint release");
        else if (k < 19 && step > 5) {
          if (int(2) === 0) server.process.kill("SIGKILL");
          await server.stop();
          server = await startServer({ root });
        }
        if (step === 3) await make("hourly");
        if (int(4) === 0) await make(Object.keys(VIEWS)[int(9)]!);
        if (int(6) === 0) { for (const view of made) await assertSameRows(server, view, VIEWS[view]!); }
      }
      for (const view of Object.keys(VIEWS)) await make(view);
      for (const view of made) await assertSameRows(server, view, VIEWS[view]!);
      await server.stop();
      server = await startServer({ root });
      for (const view of made) await assertSameRows(server, view, VIEWS[view]!);
      await run(server, "drop all tables");
      assert.deepEqual(await rowsOf(server, "select * from materialized_views()"), []);
    } finally {
      await server.stop();
    }
  }
  await Deno.remove(root, { recursive: true });
});

Deno.test("materialized views", async (t) => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  let server = await startServer({ root });
  const rows = (sql: string) => rowsOf(server, sql);
  const statusOf = (view: string) =>
    rows(`select view_status, invalidation_reason from materialized_views() where view_name = '${view}'`);
  await run(
    server,
    "create table b (ts timestamp, sym symbol, v long) timestamp(ts) partition by day wal",
    "insert into b values ('2024-01-01T01:10', 'a', 1), ('2024-01-02T02:20', 'b', 2)",
  );
  const hourly = "select ts, sum(v) s from b sample by 1h";

  await t.step("are refreshed when they are asked for, or at their times", async () => {
    await run(
      server,
      `create materialized view manual refresh manual as (${hourly})`,
      `create materialized view deferred refresh manual deferred as (${hourly})`,
      `create materialized view timed refresh every 1h deferred start '2020-01-01' as (${hourly})`,
    );
    await assertSameRows(server, "manual", hourly);
    assert.deepEqual(await rows("deferred"), []);
    await run(server, "insert into b values ('2024-01-02T05:00', 'c', 5), ('2024-01-01T01:20', 'c', 7)");
    await run(server, "refresh materialized view manual range from '2024-01-02' to '2024-01-03'");
    await until("the range is refreshed", async () => (await rows("manual")).length === 3);
    assert.deepEqual((await rows("manual"))[0], ["2024-01-01T01:00:00.000000Z", 1]);
    await run(server, "refresh materialized view manual incremental", "refresh materialized view deferred incremental");
    await assertSameRows(server, "manual", hourly);
    await assertSameRows(server, "deferred", hourly);
    assert.deepEqual(await rows("timed"), []);
    await run(
      server,
      "alter materialized view timed set refresh immediate",
      "insert into b values ('2024-01-03', 'a', 1)",
    );
    await assertSameRows(server, "timed", hourly);
    await run(server, "drop materialized view timed", "drop materialized view deferred");
  });

  await t.step("are shown as they were written", async () => {
    await run(
      server,
      "create materialized view shown refresh every 2d deferred start '2020-01-01T02:00' time zone 'Europe/Paris' as (select ts, s from (select ts, sum(v) s from b sample by 1h) order by ts desc) partition by day ttl 3 weeks",
    );
    assert.deepEqual(await rows("show create materialized view shown"), [[
      "CREATE MATERIALIZED VIEW 'shown' WITH BASE 'b' REFRESH EVERY 2d DEFERRED START '2020-01-01T02:00:00.000000Z' TIME ZONE 'Europe/Paris' AS (\nselect ts, s from (select ts, sum(v) s from b sample by 1h) order by ts desc\n) PARTITION BY DAY TTL 3 WEEKS;",
    ]]);
    await run(
      server,
      "alter materialized view shown set refresh limit 5d",
      "alter materialized view shown set refresh limit 0h",
    );
    await run(server, "alter materialized view shown resume wal", "alter materialized view shown set refresh every 5m");
    const [[limit, start]] = await rows(
      "select refresh_limit, timer_start from materialized_views() where view_name = 'shown'",
    );
    assert.equal(limit, 0);
    assert.ok(Math.abs(Date.parse(String(start)) - Date.now()) < 600_000, "it starts now");
    await run(server, "drop materialized view shown");
  });

  await t.step("are refused if a bucket depends on other times", async () => {
    const refusals: [string, number, RegExp][] = [
      ["select ts, lag(s) over (order by ts) l from (select ts, sum(v) s from b sample by 1h)", 43, /window functions/],
      ["select ts, sum(v) s, rnd_int() r from b sample by 1h", 53, /rnd_int\(\)/],
      ["select ts, sum(v) s from b sample by 1h limit 3", 32, /LIMIT/],
      ["select ts, sum(n) s from (select ts, count() n from b group by ts) timestamp(ts) sample by 1h", 32, /GROUP BY/],
      ["select first(ts) ts, sum(v) s from b sample by 1h", 32, /designated timestamp/],
      ["select timestamp_floor('1h', ts) ts, sum(v) s from b group by 1", 32, /SAMPLE BY/],
      ["select ts, v from b latest on ts partition by sym", 32, /SAMPLE BY/],
      ["select ts, sum(v) s from none sample by 1h", 57, /no table none/],
    ];
    for (const [query, position, message] of refusals) {
      await refused(server, `create materialized view mx as (${query})`, position, message);
    }
    await refused(server, "create materialized view mx refresh every 0h as (select 1)", 42, /invalid interval 0h/);
    await refused(server, "create materialized view mx refresh manual start '2020' as (select 1)", 43, /START belongs/);
    await refused(server, `create materialized view mx as (${hourly}) partition by none`, 86, /needs partitions/);
  });

  await t.step("are changed by the server alone", async () => {
    const message = /manual is a materialized view/;
    await refused(server, "insert into manual values (0, 1)", 12, message);
    await refused(server, "delete from manual", 12, message);
    await refused(server, "alter table manual drop partition list '2024-01-01'", 12, message);
    await refused(server, "drop view manual", 10, /a materialized view, not a view/);
    await refused(server, "create view manual as (select 1)", 12, /exists already/);
    await refused(server, "create table manual (x int)", 13, /exists/);
    const lines = await fetch(`${server.http}/write`, { method: "POST", body: "manual s=1i 1704067200000000000\n" });
    assert.equal(lines.status, 400);
    assert.match(await lines.text(), message);
    const body = new FormData();
    body.append("data", new Blob(["ts,s\n2024-01-01T00:00:00.000000Z,1\n"]), "t.csv");
    const imported = await fetch(`${server.http}/imp?name=manual`, { method: "POST", body });
    assert.match(await imported.text(), message);
    await refused(server, "refresh materialized view b full", 26, /b is no materialized view/);
  });

  await t.step("keep rows of partitions that the base drops", async () => {
    await run(server, `create materialized view kept as (${hourly})`);
    await assertSameRows(server, "kept", hourly);
    const before = await rows("kept");
    await run(
      server,
      "alter table b drop partition list '2024-01-01'",
      "insert into b values ('2024-01-03T01:00', 'a', 9)",
    );
    await refreshed(server, "kept");
    assert.deepEqual(await rows("kept"), [...before, ["2024-01-03T01:00:00.000000Z", 9]]);
    server.process.kill("SIGKILL");
    await server.stop();
    server = await startServer({ root });
    await refreshed(server, "kept");
    assert.equal((await rows("kept")).length, before.length + 1);
    await run(server, "refresh materialized view kept full");
    await until("the old rows are gone", async () => (await rows("kept")).length === before.length);
    await assertSameRows(server, "kept", hourly);
  });

  await t.step("become invalid when they cannot be refreshed, and valid by a full refresh", async () => {
    await run(
      server,
      "alter table b add column w long",
      "create materialized view wide as (select ts, sum(w) s from b sample by 1d)",
      "create materialized view wide_manual refresh manual as (select ts, sum(w) s from b sample by 1d)",
      "create materialized view wide_timed refresh every 1h as (select ts, sum(w) s from b sample by 1d)",
    );
    const wide = ["wide", "wide_manual", "wide_timed"];
    for (const view of wide) await refreshed(server, view);
    await run(server, "alter table b drop column w");
    for (const view of wide) {
      await until(`${view} is invalid`, async () => (await statusOf(view))[0]![0] === "invalid");
      assert.match(String((await statusOf(view))[0]![1]), /no column w/);
    }
    assert.deepEqual((await statusOf("manual"))[0], ["valid", null]);
    await run(server, "alter table b add column w long", "refresh materialized view wide full");
    await until("wide is valid", async () => (await statusOf("wide"))[0]![0] === "valid");
    await run(server, "truncate table b");
    await until("kept is invalid", async () => (await statusOf("kept"))[0]![0] === "invalid");
    assert.ok((await rows("kept")).length > 0);
    await run(server, "insert into b values ('2024-05-01', 'a', 3, 1)", "refresh materialized view kept full");
    await until("kept is valid", async () => (await statusOf("kept"))[0]![0] === "valid");
    await assertSameRows(server, "kept", hourly);
    await run(server, "rename table b to c");
    await run(server, "insert into c values ('2024-05-01', 'a', 3, 1)");
    await until("kept is invalid", async () => (await statusOf("kept"))[0]![0] === "invalid");
    assert.match(String((await statusOf("kept"))[0]![1]), /b is called c now/);
    await run(
      server,
      "drop table c",
      "drop materialized view kept",
      "drop materialized view manual",
      ...wide.map((view) => `drop materialized view ${view}`),
    );
  });

  await t.step("with more rows than a query may hold are refreshed in parts", async () => {
    await server.stop();
    server = await startServer({ root, env: { SVC_CAIRO_QUERY_MEMORY_LIMIT: "16m" } });
    await run(
      server,
      "create table large as (select timestamp_sequence('2024-01-01', 1000000) ts, x v from long_sequence(1000000)) timestamp(ts) partition by day wal",
    );
    const query = "select ts, sum(v) s, count() n, avg(v) m from large sample by 1s";
    await run(server, `create materialized view parts as (${query}) partition by day`);
    await refreshed(server, "parts");
    assert.deepEqual(await rows("select count(), sum(s), sum(n), min(ts), max(ts) from parts"), [
      [1_000_000, 500_000_500_000, 1_000_000, "2024-01-01T00:00:00.000000Z", "2024-01-12T13:46:39.000000Z"],
    ]);
    // Replacing rows takes more memory than adding them.
    await run(server, "update large set v = 1 where ts < '2024-01-08'");
    await refreshed(server, "parts");
    assert.deepEqual(await rows("select count(), sum(s) from parts"), await rows("select count(), sum(v) from large"));
  });

  await t.step("leave rows beyond their limit as they are", async () => {
    await run(
      server,
      "create table lim (ts timestamp, v long) timestamp(ts) partition by day wal",
      "insert into lim values ('2024-01-01', 1), ('2024-01-05', 1)",
      "create materialized view limited as (select ts, sum(v) s from lim sample by 1h)",
    );
    await refreshed(server, "limited");
    await run(server, "alter materialized view limited set refresh limit 36h");
    await run(server, "insert into lim values ('2024-01-01', 5), ('2024-01-04T18:00', 5)");
    await refreshed(server, "limited");
    assert.deepEqual((await rows("select s from limited")).flat(), [1, 5, 1]);
  });
  await server.stop();
  await Deno.remove(root, { recursive: true });
});

Deno.test("materialized views with PERIOD follow random changes up to the last complete period", async () => {
  const random = randomOf(SEED);
  console.log(`SEED=${SEED}`);
  const root = await Deno.makeTempDir({ prefix: "sundial-" }), int = (below: number) => Math.floor(random() * below);
  const lengths = ["1m", "1h", "7h", "1d", "1d time zone 'Asia/Kolkata'", "1h delay 20m"];
  const queries: Record<string, string> = {
    hourly: "select ts, count() n, sum(v) s from base sample by 1h",
    daily: "select ts, count() n, sum(v) s from base sample by 1d align to calendar time zone 'Europe/Paris'",
  };
  const time = () => `dateadd('m', ${int(8_000) - 5_000}, now())`;
  let server = await startServer({ root });
  const assertUpToHi = async (view: string) => {
    await refreshed(server, view);
    // The period may end meanwhile.
    await until(`${view} is right`, async () => {
      const sql = `select refresh_period_hi from materialized_views() where view_name = '${view}'`;
      const hi = (await rowsOf(server, sql))[0]![0], where = `where ts < '${hi}' order by ts`;
      if (hi === null) return false;
      const found = await rowsOf(server, `${view} ${where}`);
      return JSON.stringify(found) === JSON.stringify(await rowsOf(server, `(${queries[view]}) ${where}`));
    });
  };
  try {
    const type = int(2) === 0 ? "timestamp" : "timestamp_ns";
    await run(server, `create table base (ts ${type}, v long) timestamp(ts) partition by day wal`);
    for (const [view, query] of Object.entries(queries)) {
      await run(server, `create materialized view ${view} refresh period (length ${lengths[int(6)]}) as (${query})`);
    }
    for (let step = 0; step < STEPS_WITH_PERIOD; step++) {
      const k = int(12);
      if (k < 6 || step < 2) {
        await run(
          server,
          `insert into base select timestamp_sequence(${time()}, ${1 + int(900)}000000L), x from long_sequence(${
            1 + int(300)
          })`,
        );
      } else if (k < 7) await run(server, `update base set v = v + 1 where ts > ${time()}`);
      else if (k < 8) await run(server, `delete from base where ts > ${time()} and v % 7 = 0`);
      else if (k < 10) {
        for (const view of Object.keys(queries)) {
          await run(server, `alter materialized view ${view} set refresh period (length ${lengths[int(6)]})`);
        }
      } else if (k < 11) {
        if (int(2) === 0) server.process.kill("SIGKILL");
        await server.stop();
        server = await startServer({ root });
      } else for (const view of Object.keys(queries)) await run(server, `refresh materialized view ${view} full`);
      if (int(3) === 0) { for (const view of Object.keys(queries)) await assertUpToHi(view); }
    }
    for (const view of Object.keys(queries)) {
      await assertUpToHi(view);
      await run(server, `alter materialized view ${view} set refresh immediate`);
      await until(`${view} has all rows`, async () =>
        JSON.stringify(await rowsOf(server, `${view} order by ts`)) ===
          JSON.stringify(await rowsOf(server, `(${queries[view]}) order by ts`)));
    }
  } finally {
    await server.stop();
  }
  await Deno.remove(root, { recursive: true });
});

Deno.test("materialized views with PERIOD", async (t) => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  let server = await startServer({ root });
  const rows = (sql: string) => rowsOf(server, sql);
  const factsOf = async (view: string) => {
    const columns = `view_name, refresh_type, timer_time_zone, timer_interval, timer_interval_unit, period_length,
      period_length_unit, period_delay, period_delay_unit`;
    const [[name, ...facts]] = await rows(
      `select ${columns} from materialized_views() where view_name = '${view}'`,
    ) as [unknown[]];
    assert.equal(name, view);
    return facts;
  };
  const hiOf = async (view: string) => {
    const sql = `select refresh_period_hi from materialized_views() where view_name = '${view}'`;
    return (await rows(sql))[0]![0] as string | null;
  };
  const sumsOf = async (view: string) => (await rows(`select s from ${view} order by ts`)).flat();
  const query = "select ts, sum(v) s from b sample by 1h";
  await run(server, "create table b (ts timestamp, v long) timestamp(ts) partition by day wal");

  await t.step("are shown as they were written", async () => {
    const shown: [refresh: string, shown: string | undefined, sampled: string, facts: unknown[]][] = [
      [
        "period (length 1d time zone 'Europe/London' delay 2h)",
        "IMMEDIATE PERIOD (LENGTH 1d TIME ZONE 'Europe/London' DELAY 2h)",
        "1h",
        ["immediate", "Europe/London", 0, null, 1, "DAY", 2, "HOUR"],
      ],
      [
        "manual deferred period (length 90m)",
        "MANUAL DEFERRED PERIOD (LENGTH 90m)",
        "1h",
        ["manual", null, 0, null, 90, "MINUTE", 0, null],
      ],
      [
        "every 15m period (length 1h delay 90s)",
        "EVERY 15m PERIOD (LENGTH 1h DELAY 90s)",
        "1d",
        ["timer", null, 15, "MINUTE", 1, "HOUR", 90, "SECOND"],
      ],
      [
        "every 1h period (sample by interval)",
        "EVERY 1h PERIOD (LENGTH 2h TIME ZONE 'Europe/Paris')",
        "2h align to calendar time zone 'Europe/Paris'",
        ["timer", "Europe/Paris", 1, "HOUR", 2, "HOUR", 0, null],
      ],
      [
        "every 1h start '2020-01-01' time zone 'UTC' period (length 1h)",
        "EVERY 1h START '2020-01-01T00:00:00.000000Z' TIME ZONE 'UTC' PERIOD (LENGTH 1h)",
        "1h",
        ["timer", "UTC", 1, "HOUR", 1, "HOUR", 0, null],
      ],
    ];
    for (const [refresh, text, sampled, facts] of shown) {
      await run(
        server,
        `create materialized view s refresh ${refresh} as select ts, sum(v) s from b sample by ${sampled}`,
      );
      const [[ddl]] = await rows("show create materialized view s") as [[string]];
      assert.match(ddl, /^CREATE MATERIALIZED VIEW 's' WITH BASE 'b' REFRESH (.*) AS \(/);
      assert.equal(/REFRESH (.*) AS \(/.exec(ddl)![1], text);
      assert.deepEqual(await factsOf("s"), facts);
      assert.equal(await hiOf("s"), null);
      await run(server, "drop materialized view s", ddl);
      assert.deepEqual(await rows("show create materialized view s"), [[ddl]]);
      assert.deepEqual(await factsOf("s"), facts);
      await run(server, "drop materialized view s");
    }
    const [[start]] = await rows("select date_trunc('hour', dateadd('m', 330, now()))") as [[string]];
    await run(server, `create materialized view s refresh period (length 1h time zone 'Asia/Kolkata') as ${query}`);
    assert.equal((await rows("select timer_start from materialized_views()"))[0]![0], start);
    await run(server, "alter materialized view s set refresh manual period (length 2m)");
    assert.deepEqual(await factsOf("s"), ["manual", null, 0, null, 2, "MINUTE", 0, null]);
    await run(server, "alter materialized view s set refresh period (sample by interval)");
    assert.deepEqual(await factsOf("s"), ["immediate", null, 0, null, 1, "HOUR", 0, null]);
    await run(server, "alter materialized view s set refresh manual");
    assert.deepEqual(await factsOf("s"), ["manual", null, 0, null, 0, null, 0, null]);
    await run(server, "drop materialized view s");
  });

  // For the first four and `1 day`, QuestDB reports other places.
  await t.step("are refused if the period does not fit", async () => {
    const refusals: [refresh: string, sampled: string, position: number, message: RegExp][] = [
      ["period (sample by interval)", "1M", 35, /needs SAMPLE BY with s, m, h or d: found 1M/],
      ["period (sample by interval)", "2d", 35, /at most 24 hours: found 2d/],
      ["period (sample by interval)", "1h align to calendar with offset '00:30'", 35, /without an offset/],
      ["every 1h period (sample by interval)", "1w", 44, /with s, m, h or d: found 1w/],
      ["period (length 1w)", "1h", 50, /invalid interval 1w: expected a number of s, m, h or d/],
      ["period (length 25h)", "1h", 50, /at most 24 hours: found 25h/],
      ["period (length 1h delay 60m)", "1h", 59, /DELAY has to be shorter than LENGTH: found 60m with LENGTH 1h/],
      ["period (length 1h time zone 'Nowhere')", "1h", 63, /no time zone Nowhere/],
      ["period (length 1 day)", "1h", 52, /found day, expected \)/],
      ["immediate start '2024-01-01' period (length 1d)", "1h", 45, /START belongs to REFRESH EVERY/],
    ];
    for (const [refresh, sampled, position, message] of refusals) {
      const sql = `create materialized view s refresh ${refresh} as select ts, sum(v) s from b sample by ${sampled}`;
      await refused(server, sql, position, message);
    }
  });

  await t.step("hold back rows whose periods are not complete", async () => {
    await run(
      server,
      "insert into b values ('2024-01-01T01:10', 1), ('2024-01-02T02:20', 2), ('2100-01-01T01:10', 4)",
      `create materialized view v refresh period (length 1d) as ${query}`,
      `create materialized view asked refresh manual period (length 1d) as ${query}`,
      `create materialized view crossed refresh period (length 1d) as select ts, sum(v) s from b sample by 1y`,
    );
    for (const view of ["v", "asked"]) await refreshed(server, view);
    assert.deepEqual(await sumsOf("v"), [1, 2]);
    assert.match(`${await hiOf("v")}`, /T00:00:00.000000Z$/);
    await run(server, "insert into b values ('2024-01-01T01:20', 8), ('2100-01-01T02:10', 16)");
    await refreshed(server, "v");
    assert.deepEqual(await sumsOf("v"), [9, 2]);
    assert.deepEqual(await sumsOf("asked"), [1, 2]);
    await run(server, "refresh materialized view asked incremental");
    await refreshed(server, "asked");
    assert.deepEqual(await sumsOf("asked"), [9, 2]);
    // Periods do not divide buckets.
    await run(server, "insert into b select dateadd('s', 3, now()), 32");
    await refreshed(server, "crossed");
    assert.deepEqual(await sumsOf("crossed"), [11, 32]);
    await run(server, "delete from b where ts > '2024-12-31' and ts < '2099-01-01'");
    await refreshed(server, "crossed");
    assert.deepEqual(await sumsOf("crossed"), [11]);
    await run(server, "drop materialized view crossed", "refresh materialized view asked incremental");
    await refreshed(server, "asked");
  });

  await t.step("know after a start which rows were held back", async () => {
    const hi = await hiOf("v");
    await server.stop();
    server = await startServer({ root });
    // Each view is known when its base has been opened.
    await refreshed(server, "v");
    await refreshed(server, "asked");
    assert.equal(await hiOf("v"), hi);
    assert.equal(await hiOf("asked"), hi);
    await run(server, "insert into b values ('2024-01-02T02:30', 64), ('2100-01-01T01:30', 128)");
    await refreshed(server, "v");
    assert.deepEqual(await sumsOf("v"), [9, 66]);
    server.process.kill("SIGKILL");
    await server.stop();
    server = await startServer({ root });
    await refreshed(server, "v");
    assert.deepEqual(await sumsOf("v"), [9, 66]);
    await server.stop();
    server = await startServer({ root });
    await run(server, "alter materialized view v set refresh immediate");
    await until("v has all rows", async () => (await rows("v")).length === 4);
    assert.deepEqual(await sumsOf("v"), [9, 66, 132, 16]);
    await refreshed(server, "v");
    assert.equal(await hiOf("v"), null);
  });

  await t.step("keep rows that they have when PERIOD is set, until they are refreshed in full", async () => {
    await run(server, "alter materialized view v set refresh period (length 1h)");
    await run(server, "insert into b values ('2100-01-01T01:30', 256), ('2024-01-01T01:30', 512)");
    await until("the late row is there", async () => (await sumsOf("v"))[0] === 521);
    assert.deepEqual(await sumsOf("v"), [521, 66, 132, 16]);
    await run(server, "refresh materialized view v full");
    await until("the other rows are gone", async () => (await rows("v")).length === 2);
    await run(server, "refresh materialized view v range from '2024-01-01' to '2101-01-01'");
    await until("they were asked for", async () => (await rows("v")).length === 4);
    assert.deepEqual(await sumsOf("v"), [521, 66, 388, 16]);
  });

  await t.step("get the rows of a period when it is complete, and its delay has passed", async () => {
    await run(
      server,
      "create table p (ts timestamp, v long) timestamp(ts) partition by day wal",
      "insert into p values ('2024-01-01', 1)",
      "create materialized view soon refresh period (length 2s) as select ts, sum(v) s from p sample by 1s",
      "create materialized view later refresh period (length 2s delay 1s) as select ts, sum(v) s from p sample by 1s",
      "create materialized view timed refresh every 1h period (length 2s) as select ts, sum(v) s from p sample by 1s",
      "create materialized view kept refresh manual period (length 2s) as select ts, sum(v) s from p sample by 1s",
    );
    const views = ["soon", "later", "timed", "kept"];
    for (const view of views) await refreshed(server, view);
    const next = Math.ceil((Date.now() + 1_500) / 2_000) * 2_000, delays: Record<string, number> = { later: 1_000 };
    await run(server, `insert into p values (${next}000, 2), (${next + 1_000}000, 4), (${next + 1e9}000, 8)`);
    const end = next + 2_000;
    for (const view of ["soon", "timed", "later"]) {
      await until(`${view} has the rows`, async () => {
        const found = await sumsOf(view), isTime = Date.now() >= end + (delays[view] ?? 0);
        if (found.length === 1) return false;
        assert.deepEqual(found, [1, 2, 4]);
        assert.ok(isTime, `${view} waits for the end`);
        return true;
      });
    }
    assert.deepEqual(await sumsOf("kept"), [1]);
  });

  await t.step("get the rows of a period that was complete while the server was stopped", async () => {
    for (const view of ["soon", "timed"]) await refreshed(server, view);
    const next = Math.ceil((Date.now() + 1_500) / 2_000) * 2_000;
    await run(server, `insert into p values (${next}000, 16)`);
    for (const view of ["soon", "later"]) await refreshed(server, view);
    await server.stop();
    await until("the period is complete", () => Date.now() >= next + 2_000);
    server = await startServer({ root });
    for (const view of ["soon", "later"]) {
      await until(`${view} has the row`, async () => (await sumsOf(view)).length === 4);
    }
  });
  await server.stop();
  await Deno.remove(root, { recursive: true });
});
