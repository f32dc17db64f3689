/** node-postgres against the real server. */
import assert from "node:assert/strict";
import pg from "pg";
import { startServer, type TestServer } from "../server.ts";
import { pgClient } from "../pg-client.ts";

type Client = pg.Client;

const TYPES =
  "b boolean, y byte, h short, c char, i int, l long, f float, d double, a date, ts timestamp, n timestamp_ns, s symbol, t string, v varchar, u uuid, p ipv4";
const COLUMNS = TYPES.split(", ").map((column) => column.split(" ")[0]);
const VALUES = [
  true,
  7,
  -300,
  "x",
  123456,
  "9007199254740993",
  1.5,
  0.1,
  "2024-01-01T00:00:00.123Z",
  "2024-01-01T01:02:03.456789Z",
  "2024-01-01T00:00:00.123456Z",
  "BTC-USD",
  "text",
  "vär😀",
  "11111111-2222-3333-4444-555555555555",
  "10.1.2.3",
];
/** As the driver returns them, without parsers for times. */
const READ = [
  true,
  7,
  -300,
  "x",
  123456,
  "9007199254740993",
  1.5,
  0.1,
  "2024-01-01 00:00:00.123",
  "2024-01-01 01:02:03.456789",
  "2024-01-01 00:00:00.123456",
  "BTC-USD",
  "text",
  "vär😀",
  "11111111-2222-3333-4444-555555555555",
  "10.1.2.3",
];
const textTimes = {
  getTypeParser:
    ((oid: number, format: "text" | "binary") =>
      oid === 1114 ? (value: string) => value : pg.types.getTypeParser(oid as never, format as never)) as never,
};

async function connected(server: TestServer, more: pg.ClientConfig = {}): Promise<Client> {
  const client = pgClient(server, more);
  await client.connect();
  return client;
}

Deno.test("node-postgres: rows that are sent as they are, then statements that are answered later", async () => {
  await using server = await startServer();
  const client = await connected(server);
  try {
    for (let run = 0; run < 3; run++) {
      const { rows } = await client.query({ name: "long", text: "select lpad('x', 20000, '-') long" });
      assert.equal(rows[0].long, `${"-".repeat(19_999)}x`);
      await client.query({ name: `create ${run}`, text: `create table after${run} (x int)` });
    }
  } finally {
    await client.end();
  }
});

Deno.test("node-postgres", async (t) => {
  await using server = await startServer();
  const client = await connected(server);
  await client.query(`create table types (${TYPES}) timestamp(ts) partition by day`);
  const step = (name: string, body: () => Promise<void>) => t.step(name, body);

  await step("inserts every type by parameters and reads it as text", async () => {
    const places = COLUMNS.map((_, index) => `$${index + 1}`).join(", ");
    const inserted = await client.query(`insert into types (${COLUMNS}) values (${places})`, VALUES);
    assert.equal(inserted.command, "INSERT");
    assert.equal(inserted.rowCount, 1);
    await client.query(
      `insert into types (${COLUMNS}) values (${places})`,
      COLUMNS.map((name) => name === "ts" ? new Date("2024-01-02T00:00:00Z") : null),
    );
    const { rows, fields, rowCount } = await client.query({
      text: "select * from types",
      rowMode: "array",
      types: textTimes,
    });
    assert.equal(rowCount, 2);
    assert.deepEqual(rows[0], READ);
    const nulls = COLUMNS.map((name) =>
      name === "b" ? false : name === "y" || name === "h" ? 0 : name === "ts" ? "2024-01-02 00:00:00.000000" : null
    );
    assert.deepEqual(rows[1], nulls);
    assert.deepEqual(fields.map((field: { dataTypeID: number }) => field.dataTypeID), [
      16,
      21,
      21,
      1042,
      23,
      20,
      700,
      701,
      1114,
      1114,
      1114,
      1043,
      1043,
      1043,
      2950,
      1043,
    ]);
  });

  await step("tells the sizes of types", async () => {
    const { fields } = await client.query("select 1.25::decimal(10, 2), 'a'::char, 'a'::varchar");
    const sizes = fields.map(({ dataTypeModifier }: { dataTypeModifier: number }) => dataTypeModifier);
    assert.deepEqual(sizes, [(10 << 16) + 2 + 4, 1 + 4, -1]);
  });

  await step("filters by parameters whose type comes from the column", async () => {
    for (
      const [column, value] of [
        ["s", "BTC-USD"],
        ["v", "vär😀"],
        ["ts", "2024-01-01T01:02:03.456789Z"],
        ["l", "9007199254740993"],
        ["u", VALUES[14]],
        ["d", 0.1],
        ["c", "x"],
        ["p", "10.1.2.3"],
      ]
    ) {
      const { rows } = await client.query(`select count() n from types where ${column} = $1`, [value]);
      assert.deepEqual(rows, [{ n: "1" }], `${column} = ${value}`);
    }
    const { rows } = await client.query("select x from long_sequence(10) limit $1, $2", [2, 4]);
    assert.deepEqual(rows.map((row: { x: string }) => row.x), ["3", "4"]);
  });

  await step("runs a named statement repeatedly, also after its table has changed", async () => {
    await client.query("create table changing (x int)");
    const insert = { name: "insert", text: "insert into changing (x) values ($1)" };
    const count = { name: "count", text: "select count() n from changing" };
    for (const x of [1, 2]) assert.equal((await client.query({ ...insert, values: [x] })).rowCount, 1);
    await client.query("alter table changing add column y int");
    await client.query({ ...insert, values: [3] });
    assert.deepEqual((await client.query(count)).rows, [{ n: "3" }]);
  });

  const failing: { text: string; values?: unknown[]; code: string; position?: string }[] = [
    { text: "select * from nobody", code: "42P01", position: "15" },
    { text: "select nothing from types", code: "42703", position: "8" },
    { text: "select 'ä😀' || nothing(1)", code: "42883", position: "16" },
    { text: "selec 1", code: "42601", position: "1" },
    { text: "select * from types where i = $1", values: ["twelve"], code: "22P02" },
  ];
  await step("reports errors with their position", async () => {
    for (const { text, values, code, position } of failing) {
      await assert.rejects(client.query(text, values), (error: pg.DatabaseError) => {
        assert.equal(error.severity, "ERROR");
        assert.equal(error.code, code, error.message);
        if (position !== undefined) assert.equal(error.position, position, text);
        return true;
      });
    }
    assert.deepEqual((await client.query("select 1 x")).rows, [{ x: 1 }]);
  });

  await step("undoes a transaction on rollback, and keeps it on commit", async () => {
    await client.query("create table held (x int)");
    for (const [end, count] of [["rollback", "0"], ["commit", "2"]]) {
      await client.query("begin");
      await client.query("insert into held values (1)");
      await client.query("insert into held values ($1)", [2]);
      const other = await connected(server);
      assert.deepEqual((await other.query("select count() n from held")).rows, [{ n: "0" }]);
      await other.end();
      await client.query(end);
      assert.deepEqual((await client.query("select count() n from held")).rows, [{ n: count }]);
    }
  });

  await step("runs several statements in one text", async () => {
    const results = await client.query(
      "insert into held values (3); select max(x) x from held; update held set x = 9 where x = 3",
    ) as unknown as pg.QueryResult[];
    assert.deepEqual(results.map(({ command, rowCount }) => [command, rowCount]), [["INSERT", 1], ["SELECT", 1], [
      "UPDATE",
      1,
    ]]);
    assert.deepEqual(results[1].rows, [{ x: 3 }]);
  });

  await step("reads a large result whole", async () => {
    const { rows } = await client.query({ text: "select x, x * 2 y from long_sequence(200000)", rowMode: "array" });
    assert.equal(rows.length, 200_000);
    assert.deepEqual(rows[199_999], ["200000", "400000"]);
  });

  await step("ends a query at its time limit, and the connection stays usable", async () => {
    const hasty = await connected(server, { statement_timeout: 200 });
    await assert.rejects(
      hasty.query("select count() from long_sequence(10000000) a cross join long_sequence(10000000) b"),
      { code: "57014" },
    );
    assert.deepEqual((await hasty.query("select 1 x")).rows, [{ x: 1 }]);
    await hasty.end();
  });

  await step("cancels a query at the request of another connection", async () => {
    const { processID, secretKey } = client as unknown as { processID: number; secretKey: number };
    const running = client.query("select count() from long_sequence(10000000) a cross join long_sequence(10000000) b");
    setTimeout(async () => {
      const conn = await Deno.connect({ hostname: "127.0.0.1", port: server.pgPort });
      const request = new DataView(new ArrayBuffer(16));
      [16, 80877102, processID, secretKey].forEach((word, index) => request.setInt32(index * 4, word));
      await conn.write(new Uint8Array(request.buffer));
      conn.close();
    }, 200);
    await assert.rejects(running, { code: "57014" });
    assert.deepEqual((await client.query("select 1 x")).rows, [{ x: 1 }]);
  });

  await step("is refused with a wrong password", async () => {
    await assert.rejects(connected(server, { password: "wrong" }), { code: "28P01" });
  });

  await step("shares connections of a pool", async () => {
    const pool = new pg.Pool({
      host: "127.0.0.1",
      port: server.pgPort,
      user: "admin",
      password: "quest",
      database: "qdb",
      max: 4,
    });
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) => pool.query("select $1::int + 1 y", [index])),
    );
    assert.deepEqual(
      answers.map((answer: { rows: { y: number }[] }) => answer.rows[0].y),
      Array.from({ length: 40 }, (_, index) => index + 1),
    );
    await pool.end();
  });

  await client.end();
});
