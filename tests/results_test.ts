/** Spooled results of the real server: their owner, their progress, and what they hold of storage. */
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

  await t.step("rows are sorted by the server", async () => {
    const query = "select x, -x y from long_sequence(200000) -- note";
    const { dataset } = await ask("POST", { query, sort: "2", wait: "30000" });
    assert.deepEqual(dataset.slice(0, 2), [["200000", "-200000"], ["199999", "-199999"]]);
    assert.match((await ask("POST", { query: "explain select 1", sort: "1" })).error!, /./);
    assert.match((await ask("POST", { query: "select 1; select 2", sort: "1" })).error!, /one statement: found 2/);
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
