/** Rows of few symbols are found by the postings of segments, with the answers of a scan. */
import assert from "node:assert/strict";
import { startServer, type TestServer } from "./server.ts";

const ROWS = 300_000, DAYS = 3;

/**
 * Many symbols of a few rows, one of half of the rows, some of the first hours, and NULLs; texts, and a price that sums exactly.
 */
const CREATE = `create table t as (
  select timestamp_sequence('2024-01-01', ${Math.floor(DAYS * 86_400e6 / ROWS)}) ts,
    case when x % 2 = 0 then 'BIG' when x % 9 = 0 then null when x < 40000 and x % 50 = 3 then 'EARLY'
      when x < 20000 and x % 10 = 7 then 'ENDED' || x % 1000 else 'S' || (x * 7919 % 3001) end::symbol sym,
    ('V' || x % 100)::symbol venue, x amount, x % 1000 / 8.0 price, 'note ' || x % 777 note
  from long_sequence(${ROWS})
) timestamp(ts) partition by day`;

/** Only segments in files have postings. */
const STORED = ["checkpoint create", "checkpoint release"];

/** Conditions on the symbol, and the same without the index. */
const CONDITIONS: [indexed: string, scanned: string][] = [
  ["sym = 'S77'", "sym || '' = 'S77'"],
  ["'S1234' = sym", "sym || '' = 'S1234'"],
  ["sym = 'EARLY'", "sym || '' = 'EARLY'"],
  ["sym = 'BIG'", "sym || '' = 'BIG'"],
  ["sym = 'absent'", "sym || '' = 'absent'"],
  ["sym in ('S5', 'EARLY', 'S2999', 'absent')", "sym || '' in ('S5', 'EARLY', 'S2999', 'absent')"],
  ["sym in ('S5', 'BIG')", "sym || '' in ('S5', 'BIG')"],
  ["sym in ('S6', null)", "(sym || '' = 'S6' or sym is null)"],
  ["sym = 'S8' and venue = 'V3'", "sym || '' = 'S8' and venue || '' = 'V3'"],
  ["sym = 'MOVED'", "sym || '' = 'MOVED'"],
  ["sym = 'LATE'", "sym || '' = 'LATE'"],
  [
    "sym in ('S10', 'S11') and ts between '2024-01-01T20:00:01' and '2024-01-02T05:30'",
    "sym || '' in ('S10', 'S11') and ts between '2024-01-01T20:00:01' and '2024-01-02T05:30'",
  ],
];

const QUERIES = [
  "select * from t where $ and amount % 4 <> 1",
  "select * from t where $ order by ts desc limit 7",
  "select amount, note from t where $ limit 40, 50",
  "select count(), sum(amount), sum(price), min(note), max(ts) from t where $",
  "select venue, count(), sum(price) from t where $ order by venue",
  "select ts, sum(price), count() from t where $ sample by 3h",
  "select ts, venue, first(amount) from t where $ sample by 1d order by ts, venue",
  "select count_distinct(amount % 1000) from t where $",
  "select amount from t where $ order by price desc, amount limit 5",
  "select * from t where $ latest on ts partition by sym",
  "select amount, other from t join (select 'V' || x other from long_sequence(5)) on venue = other where $",
];

async function answer(server: TestServer, sql: string): Promise<string> {
  const { dataset, error } = await server.exec(sql);
  assert.equal(error, undefined, sql);
  return JSON.stringify(dataset);
}

async function compare(server: TestServer): Promise<void> {
  for (const query of QUERIES) {
    for (const [indexed, scanned] of CONDITIONS) {
      const sql = query.replace("$", () => indexed);
      assert.equal(await answer(server, sql), await answer(server, query.replace("$", () => scanned)), sql);
    }
  }
  assert.equal(
    await answer(server, "select sym, ts from t latest on ts partition by sym order by sym"),
    await answer(server, "select sym, max(ts) from t order by sym"),
  );
}

async function exec(server: TestServer, ...statements: string[]): Promise<void> {
  for (const sql of statements) assert.equal((await server.exec(sql)).error, undefined, sql);
}

async function planOf(server: TestServer, sql: string): Promise<string> {
  const { dataset, error } = await server.exec(`explain analyze ${sql}`);
  assert.equal(error, undefined, sql);
  return dataset!.map(([line]) => line).join("\n");
}

Deno.test("rows that are looked up are those of a scan, also after late rows, updates and deletes", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  {
    await using server = await startServer({ root });
    await exec(server, CREATE, ...STORED);
    assert.match(
      await planOf(server, "select sum(amount) from t where sym = 'S77'"),
      /index of \d+ segments, 0 of them/,
    );
    assert.match(
      await planOf(server, "select * from t latest on ts partition by sym"),
      /index of [1-9]\d* segments, [1-9]/,
    );
    // The statistics of segments tell nothing here: the symbol lies between others.
    assert.match(
      await planOf(server, "select * from t where sym = 'EARLY'"),
      /index of \d+ segments, [1-9]\d* of them/,
    );
    assert.doesNotMatch(await planOf(server, "select * from t where sym || '' = 'S77'"), /index of/);
    await exec(
      server,
      "update t set sym = 'MOVED' where sym = 'S100' and amount > 150000",
      "update t set sym = null, note = 'gone' where sym in ('S101', 'S102')",
      "insert into t select dateadd('s', 17, ts), 'LATE'::symbol, venue, amount, price, note from t where sym = 'S103'",
      "insert into t select '2024-01-02T03:04:05', 'S77'::symbol, 'V1'::symbol, x, 0.5, 'late' from long_sequence(3)",
      "delete from t where sym = 'S10' and amount % 3 = 0",
      "alter table t add column added symbol",
      "insert into t (ts, sym, amount, added) values ('2024-01-03T23:59:59.9', 'S77', 1, 'new')",
    );
    await compare(server);
    await server.stop();
  }
  await using server = await startServer({ root });
  assert.match(await planOf(server, "select sum(amount) from t where sym = 'S77'"), /index of \d+ segments/);
  await compare(server);
  assert.equal(
    await answer(server, "select count() from t where sym = 'S77' and added is null"),
    await answer(server, "select count() - 1 from t where sym || '' = 'S77'"),
  );
});

Deno.test("few symbols have an index only if it is declared", async () => {
  await using server = await startServer();
  const columns = `timestamp_sequence('2024-01-01', 1000) ts, ('A' || x % 500)::symbol a, x`;
  const rows = `(select ${columns} from long_sequence(${ROWS}))`;
  await exec(
    server,
    `create table plain as ${rows} timestamp(ts) partition by year`,
    `create table declared as ${rows}, index(a) timestamp(ts) partition by year`,
    ...STORED,
  );
  const query = (table: string) => `select sum(x), count() from ${table} where a = 'A7'`;
  assert.doesNotMatch(await planOf(server, query("plain")), /index of/);
  assert.match(await planOf(server, query("declared")), /index of/);
  assert.equal(await answer(server, query("plain")), await answer(server, query("declared")));
});

Deno.test("an index that is added holds for segments that are written later, also after a restart", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  const rows = (from: string) =>
    `select timestamp_sequence('${from}', 1000) ts, ('A' || x % 500)::symbol a, x from long_sequence(${ROWS})`;
  const query = "select sum(x), count() from t where a = 'A7'", scanned = query.replace("a =", "a || '' =");
  {
    await using server = await startServer({ root });
    await exec(server, `create table t as (${rows("2024-01-01")}) timestamp(ts) partition by day`, ...STORED);
    await exec(server, "alter table t alter column a add index capacity 100");
    assert.doesNotMatch(await planOf(server, query), /index of/);
    await exec(server, `insert into t ${rows("2024-02-01")}`, ...STORED);
    await server.stop();
  }
  {
    await using server = await startServer({ root });
    assert.match(await answer(server, "show create table t"), /a SYMBOL INDEX CAPACITY 128/);
    assert.match(await planOf(server, query), /index of/);
    assert.equal(await answer(server, query), await answer(server, scanned));
    await exec(server, "alter table t alter column a drop index", `insert into t ${rows("2024-03-01")}`, ...STORED);
    await server.stop();
  }
  await using server = await startServer({ root });
  assert.doesNotMatch(await planOf(server, `${query} and ts in '2024-03'`), /index of/);
  assert.equal(await answer(server, query), await answer(server, scanned));
});
