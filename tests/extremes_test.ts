/** Tables with extreme contents, queried before and after restarts. */
import assert from "node:assert/strict";
import { CRITICAL, startServer, type TestServer } from "./server.ts";

async function ok(server: TestServer, sql: string): Promise<unknown[][]> {
  const reply = await server.exec(sql);
  assert.equal(reply.error, undefined, sql.slice(0, 200));
  return reply.dataset ?? [];
}

async function write(server: TestServer, lines: string): Promise<void> {
  const reply = await fetch(`${server.http}/write?precision=u`, { method: "POST", body: lines });
  assert.equal(reply.status, 204, await reply.text());
}

const MILLION = 1_000_000;
const TEXT_BYTES = 24 << 20;
const COLUMNS = 2_000;
const PARTITIONS = 10_000;
const DAY = 86_400_000_000;
/** The last microsecond of the year 9999. */
const LAST = 253_402_300_799_999_999n;

interface Extreme {
  title: string;
  make(server: TestServer): Promise<void>;
  ask: [sql: string, answer: unknown[][]][];
}

const extremes: Extreme[] = [
  {
    title: "a symbol of a million values",
    async make(server) {
      await ok(
        server,
        `create table symbols as (select ('sym' || x)::symbol s, x, timestamp_sequence(0, 1000) ts from long_sequence(${MILLION})) timestamp(ts) partition by day`,
      );
      await ok(server, `insert into symbols select ('sym' || (x + ${MILLION - 10})) s, x, ts from symbols limit 1000`);
    },
    ask: [
      ["select count(), count_distinct(s) from symbols", [[MILLION + 1000, MILLION + 990]]],
      ["select x from symbols where s = 'sym777777'", [[777777]]],
      ["select s, count() c from symbols group by s order by c desc, s limit 2", [["sym1000000", 2], ["sym999991", 2]]],
    ],
  },
  {
    title: "texts of tens of megabytes",
    async make(server) {
      await ok(server, "create table texts (n long, t varchar, ts timestamp) timestamp(ts) partition by day");
      for (let n = 0; n < 3; n++) {
        await write(server, `texts n=${n}i,t="${String(n).repeat(TEXT_BYTES)}" ${n * DAY}\n`);
      }
      await write(server, `texts n=3i,t="small" ${DAY + 1}\n`);
    },
    ask: [
      ["select n, length(t) l, left(t, 3) s from texts order by n", [
        [0, TEXT_BYTES, "000"],
        [1, TEXT_BYTES, "111"],
        [2, TEXT_BYTES, "222"],
        [3, 5, "sma"],
      ]],
    ],
  },
  {
    title: "a table of two thousand columns",
    async make(server) {
      const columns = Array.from(
        { length: COLUMNS },
        (_, k) => `c${k} ${["long", "double", "varchar", "symbol"][k % 4]}`,
      );
      await ok(server, `create table wide (${columns}, ts timestamp) timestamp(ts) partition by day`);
      const fields = Array.from(
        { length: COLUMNS },
        (_, k) => (k % 4 === 3 ? "" : `c${k}=${[`${k}i`, `${k}.5`, `"t${k}"`][k % 4]}`),
      ).filter((field) => field !== "");
      const tags = Array.from({ length: COLUMNS }, (_, k) => (k % 4 === 3 ? `,c${k}=s${k}` : "")).join("");
      for (let row = 0; row < 3; row++) await write(server, `wide${tags} ${fields} ${row}\n`);
      await ok(server, "alter table wide add column one_more int");
      await ok(server, "update wide set one_more = 7, c1998 = 'new'");
    },
    ask: [
      ["select count(), sum(c0), sum(c1996), max(c1998), max(c1999), sum(one_more) from wide", [
        [3, 0, 3 * 1996, "new", "s1999", 21],
      ]],
      ["select count() from (show columns from wide)", [[COLUMNS + 2]]],
    ],
  },
  {
    title: "ten thousand partitions",
    async make(server) {
      await ok(server, "create table parts (n long, ts timestamp) timestamp(ts) partition by hour");
      await ok(
        server,
        `insert into parts select x, timestamp_sequence(0, 3600000000) ts from long_sequence(${PARTITIONS})`,
      );
      await ok(
        server,
        `insert into parts select x, timestamp_sequence(1, 3600000000) ts from long_sequence(${PARTITIONS / 2})`,
      );
      await ok(server, "delete from parts where n % 1000 = 1");
    },
    ask: [
      ["select count(), sum(n) from parts", [[
        1.5 * PARTITIONS - 15,
        50_005_000 + 12_502_500 - (10 * 4501 + 5 * 2001),
      ]]],
      ["select count() from table_partitions('parts')", [[PARTITIONS - 10]]],
      ["select n from parts where ts in '1970-01-02T03' order by n", [[28], [28]]],
    ],
  },
  {
    title: "the first and the last time",
    async make(server) {
      await ok(server, "create table ends (n long, t timestamp, d date, ts timestamp) timestamp(ts) partition by year");
      await ok(server, `insert into ends values (1, -1, -86400001, 0), (2, '0001-01-01', '0001-01-01', ${LAST})`);
      await ok(
        server,
        `insert into ends values (3, ${LAST}, '9999-12-31', '2000-02-29T23:59:59.999999Z'), (4, null, null, 0)`,
      );
      const refused = await server.exec("insert into ends values (5, 0, 0, -1)");
      assert.match(refused.error ?? "", /1970/);
    },
    ask: [
      ["select n, t, d, ts from ends", [
        [1, "1969-12-31T23:59:59.999999Z", "1969-12-30T23:59:59.999Z", "1970-01-01T00:00:00.000000Z"],
        [4, null, null, "1970-01-01T00:00:00.000000Z"],
        [3, "9999-12-31T23:59:59.999999Z", "9999-12-31T00:00:00.000Z", "2000-02-29T23:59:59.999999Z"],
        [2, "0001-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999999Z"],
      ]],
      ["select count() from ends where ts > '2000' and t < 0", [[1]]],
    ],
  },
  {
    title: "empty tables",
    async make(server) {
      await ok(server, "create table empty (s symbol, v varchar, n long, ts timestamp) timestamp(ts) partition by day");
      await ok(server, "create table emptied (s symbol, n long, ts timestamp) timestamp(ts) partition by day");
      await ok(server, "insert into emptied values ('a', 1, 0), ('b', 2, 1)");
      await ok(server, "delete from emptied where n > 0");
      await ok(server, "create table none as (select x from long_sequence(10) where x > 10)");
      await ok(server, "update empty set n = 1");
      await ok(server, "truncate table empty");
    },
    ask: [
      ["select count(), sum(n), max(s) from empty", [[0, null, null]]],
      ["select * from empty", []],
      ["select s, count() from emptied group by s", []],
      ["select * from emptied latest on ts partition by s", []],
      ["select ts, count() from empty sample by 1h", []],
      ["select a.n from empty a asof join emptied b on s", []],
      ["select count() from none", [[0]]],
      ["select s, row_number() over (partition by s) r from empty", []],
    ],
  },
];

Deno.test("tables with extreme contents, before and after restarts", async (t) => {
  const root = await Deno.makeTempDir({ prefix: "sundial-extremes-" });
  const env = { SVC_CAIRO_CHECKPOINT_LOG_SIZE: "16m", SVC_LINE_TCP_MAX_MEASUREMENT_SIZE: "32m" };
  try {
    let server = await startServer({ root, env });
    for (const { title, make, ask } of extremes) {
      await t.step(title, async () => {
        const start = performance.now();
        await make(server);
        for (const [sql, answer] of ask) assert.deepEqual(await ok(server, sql), answer, sql);
        console.log(`  ${Math.round(performance.now() - start)} ms`);
      });
    }
    for (const how of ["SIGKILL", "SIGTERM"] as const) {
      await t.step(`after ${how}`, async () => {
        server.process.kill(how);
        await server.process.status;
        await server.stop();
        assert.doesNotMatch(server.output(), CRITICAL);
        server = await startServer({ root, env });
        for (const { ask } of extremes) {
          for (const [sql, answer] of ask) assert.deepEqual(await ok(server, sql), answer, sql);
        }
      });
    }
    await server.stop();
    assert.doesNotMatch(server.output(), CRITICAL);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
