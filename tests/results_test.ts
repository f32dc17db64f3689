/** Spooled results of the real server: their owner, their progress, and the storage that they keep in use. */
import assert from "node:assert/strict";
import { basic, type Credentials, startProtected } from "./access/server.ts";

const PATH = "/api/v1/sql/results";
const ANN: Credentials = { name: "ann", password: "ann's password" };
const BOB: Credentials = { name: "bob", password: "bob's password" };

interface Reply {
  status: number;
  id: string;
  state: string;
  rows: number;
  columns: { name: string; type: string }[];
  dataset: unknown[][];
  progress?: { rowsRead: number; rowsToRead?: number; seconds: number };
  error?: string;
}

Deno.test("spooled results of the real server", async (t) => {
  await using server = await startProtected({ SVC_METRICS_ENABLED: "true" });
  await server.set(
    "create table t as (select x, rnd_symbol('a', 'b') s, (x * 1000000)::timestamp ts from long_sequence(1000000)) timestamp(ts) partition by month",
    ...[ANN, BOB].flatMap(({ name, password }) => [
      `create user ${name} with password '${password.replace("'", "''")}'`,
      `grant http to ${name}`,
    ]),
    "grant select on t to ann",
  );
  const ask = async (method: string, parameters: Record<string, string>, as = ANN): Promise<Reply> => {
    const text = new URLSearchParams(parameters);
    const { status, text: body } = method === "POST"
      ? await server.request(PATH, basic(as), {
        method,
        body: `${text}`,
        headers: { "content-type": "application/x-www-form-urlencoded" },
      })
      : await server.request(`${PATH}?${text}`, basic(as), { method });
    return { status, ...body.startsWith("{") ? JSON.parse(body) : {} };
  };
  const pinned = async () => {
    const reply = await fetch(`http://127.0.0.1:${server.minPort}/metrics`);
    return Number(/^service_pinned_versions (\d+)/m.exec(await reply.text())![1]);
  };

  await t.step("a million rows are read to the last one, and hold no snapshot once they are spooled", async () => {
    const made = await ask("POST", { query: "select * from t", wait: "30000" });
    assert.deepEqual([made.status, made.state, made.rows], [200, "done", 1_000_000]);
    assert.equal(await pinned(), 0);
    await server.set("truncate table t");
    const { dataset } = await ask("GET", { id: made.id, first: "999998", count: "10" });
    assert.deepEqual(dataset.map(([x]) => x), ["999999", "1000000"]);
    assert.equal((await ask("GET", { id: made.id }, BOB)).status, 404);
    assert.equal((await ask("DELETE", { id: made.id }, BOB)).status, 404);
    assert.equal((await ask("GET", { id: made.id, first: "0", count: "1" })).dataset.length, 1);
  });

  await t.step("a user without permission to read the table gets no result", async () => {
    assert.equal((await ask("POST", { query: "select * from t", wait: "1000" }, BOB)).status, 403);
  });

  await t.step("the rows that are there are ordered, and the statement does not run again", async () => {
    const query =
      "select x, rnd_double() y, case when x % 3 = 0 then null else rnd_str(3, 9, 0) end s from long_sequence(200000)";
    const { id } = await ask("POST", { query, wait: "30000" });
    const first = (await ask("GET", { id, first: "0", count: "100000" })).dataset;
    const ordered = await ask("POST", { of: id, sort: "2", descending: "true", wait: "30000" });
    assert.deepEqual([ordered.state, ordered.rows, ordered.columns.map(({ type }) => type)], ["done", 200_000, [
      "LONG",
      "DOUBLE",
      "STRING",
    ]]);
    const byX = new Map(
      (await ask("GET", { id: ordered.id, first: "0", count: "100000" })).dataset.map((row) => [row[0], row]),
    );
    const common = first.filter(([x]) => byX.has(x));
    assert.ok(common.length > 10_000);
    for (const row of common) assert.deepEqual(byX.get(row[0]), row);
    const values = ordered.dataset.map((row) => row[1] as number);
    assert.deepEqual(values, values.toSorted((a, b) => b - a));
    for (const descending of ["true", "false"]) {
      const texts = await ask("POST", { of: id, sort: "3", descending, wait: "30000" });
      assert.ok(texts.dataset.every((row) => row[2] !== null), "nulls are last");
    }
    assert.equal((await ask("POST", { of: id, sort: "4" })).status, 400);
    assert.equal((await ask("POST", { of: id, sort: "1" }, BOB)).status, 404);
    await ask("DELETE", { id });
    assert.equal((await ask("POST", { of: id, sort: "1" })).status, 404);
  });

  await t.step("values of every type are read again as they were", async () => {
    const values = [
      "x",
      "x % 2 = 0",
      ...["byte", "short", "int", "float", "double", "date", "timestamp", "timestamp_ns", "symbol", "varchar", "string"]
        .map((type) => `(x * 1001)::${type}`),
      "(x / 7.0)::float",
      "x * 1e300",
      "(-0.0) / x",
      "-9007199254740993 - x",
      `case when x = 1 then '' else 'a "b" \\ \n ä€😀' end`,
      "case when x = 1 then 'c'::char else null::char end",
      "'2262-01-01T00:00:00.123456Z'::timestamp",
      "'1900-01-01T00:00:00.123456Z'::timestamp",
      "'11111111-1111-1111-2222-222222222222'::uuid",
      "'255.1.2.3'::ipv4",
      "'0x01ff'::long256",
      "null::long256",
      "(x * 1.25)::decimal(20, 2)",
      "cast('u33d8' as geohash(5c))",
      "cast('u33d8' as geohash(7b))",
      "array[x, null, 2.5]",
      "array[[1.0, x], [3.0, 4.0]]",
      "rnd_bin(2, 4, 0)",
      "interval(x::timestamp, (x * 1000000)::timestamp)",
      ...["int", "long", "double", "float", "timestamp", "date", "symbol", "varchar", "uuid", "ipv4", "binary"].map((
        type,
      ) => `null::${type}`),
    ];
    const query = `select ${values.map((value, k) => `${value} c${k}`).join(", ")} from long_sequence(5)`;
    const made = await ask("POST", { query, keep: "true", wait: "10000" });
    assert.deepEqual([made.error, made.dataset?.length], [undefined, 5]);
    const ordered = await ask("POST", { of: made.id, sort: "1", descending: "true", wait: "10000" });
    assert.deepEqual(ordered.columns, made.columns);
    assert.deepEqual(ordered.dataset, made.dataset.toReversed());
    for (let column = 1; column <= values.length; column++) {
      const { error } = await ask("POST", { of: made.id, sort: String(column), wait: "10000" });
      if (error !== undefined) assert.match(error, /values of (?:ARRAY|BINARY) have no order/);
    }
  });

  await t.step("a Parquet file has the rows that are there", async () => {
    const query = "select x, rnd_double() y, rnd_symbol('a', 'b') s, x::timestamp ts from long_sequence(100000)";
    for (const more of [{}, { limit: "few" }]) {
      const text = "limit" in more ? `${query} limit 10` : query;
      const { id } = await ask("POST", { query: text, keep: "true", wait: "30000" });
      const { dataset } = await ask("GET", { id, first: "0", count: "100000" });
      const reply = await fetch(`${server.http}${PATH}?${new URLSearchParams({ id, fmt: "parquet" })}`, {
        headers: { authorization: basic(ANN) },
      });
      assert.equal(reply.headers.get("content-type"), "application/vnd.apache.parquet");
      await Deno.writeFile(`${server.root}/import/again.parquet`, await reply.bytes());
      const { dataset: read } = await ask("POST", {
        query: "select x, y, s, ts from read_parquet('again.parquet') limit 50000",
        wait: "20000",
      });
      assert.deepEqual(read, dataset.slice(0, read.length));
      assert.equal(read.length, Math.min(1_000, dataset.length));
      await ask("DELETE", { id });
      assert.equal((await ask("GET", { id, fmt: "parquet" })).status, 404);
    }
    const { id } = await ask("POST", {
      query: "select rnd_bin() b from long_sequence(3)",
      keep: "true",
      wait: "20000",
    });
    assert.match((await ask("GET", { id, fmt: "parquet" })).error!, /no bytes of BINARY/);
  });

  await t.step("SAMPLE BY is narrowed to a range with finer buckets", async () => {
    const query = "select ts, count() from u sample by 1d";
    await server.set(
      "create table u as (select timestamp_sequence('2026-01-01', 1000000) ts from long_sequence(200000)) timestamp(ts)",
      "grant select on u to ann",
    );
    const [from, to] = [Date.UTC(2026, 0, 1, 6), Date.UTC(2026, 0, 1, 7)].map(String);
    const { dataset } = await ask("POST", { query, from, to, buckets: "60", wait: "10000" });
    assert.equal(dataset.length, 60);
    assert.deepEqual(dataset[1], ["2026-01-01T06:01:00.000000Z", "60"]);
    const { status, error } = await ask("POST", { query: "select * from u", from, to, buckets: "60" });
    assert.equal(status, 400);
    assert.match(error!, /no SAMPLE BY that can be narrowed/);
    assert.equal((await ask("POST", { query, from, to: "x", buckets: "60" })).status, 400);
  });

  await t.step("progress is told while it runs, and DELETE cancels", async () => {
    const query = "select count() from long_sequence(20000000000) where rnd_double() < 0";
    const { id, state } = await ask("POST", { query });
    assert.equal(state, "running");
    const { progress } = await ask("GET", { id, wait: "700" });
    assert.ok(progress!.rowsRead > 0 && progress!.seconds > 0, JSON.stringify(progress));
    assert.equal((await ask("DELETE", { id })).status, 204);
    const running = async () => (await server.sql("select count() from query_activity()")).dataset![0][0];
    for (let k = 0; k < 100 && await running() !== 1; k++) await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(await running(), 1);
  });
});
