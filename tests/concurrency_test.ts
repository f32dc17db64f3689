/** Concurrency: schema changes during long reads, and writers on all wires with readers. */
import assert from "node:assert/strict";
import { CRITICAL, startServer, type TestServer } from "./server.ts";
import { connectedPg, pgClient } from "./pg-client.ts";

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function ok(server: TestServer, sql: string): Promise<unknown[][]> {
  const reply = await server.exec(sql);
  assert.equal(reply.error, undefined, sql);
  return reply.dataset ?? [];
}

/** Reads a result slowly: its first bytes now, the rest when `go` resolves. */
async function slowly(server: TestServer, sql: string, go: Promise<unknown>): Promise<string[]> {
  const reply = await fetch(`${server.http}/exp?${new URLSearchParams({ query: sql })}`);
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
  const first = await reader.read();
  await go;
  let text = first.value!;
  for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value;
  return text.trimEnd().split("\r\n").slice(1);
}

const ROWS = 200_000;

Deno.test("a running query reads its version to the end, whatever happens to the table", async () => {
  await using server = await startServer({
    env: { SVC_CAIRO_CHECKPOINT_LOG_SIZE: "1m", SVC_CAIRO_CHECKPOINT_INTERVAL: "1s", SVC_QUERY_DIRECT_ROWS_MAX: "0" },
  });
  const changes = [
    "drop table NAME",
    "truncate table NAME",
    "alter table NAME drop column s",
    "alter table NAME rename column x to y",
    "rename table NAME to NAME_gone",
    "update NAME set s = 'changed'",
    "delete from NAME where x % 2 = 0",
    "insert into NAME select x, 'late', ts, 'late' from NAME",
  ];
  for (const [k, change] of changes.entries()) {
    const name = `t${k}`;
    await ok(
      server,
      `create table ${name} as (select x, 's' || (x % 1000) s, timestamp_sequence(0, 1000000) ts, 'a longer text of row ' || x t from long_sequence(${ROWS})) timestamp(ts) partition by day`,
    );
    let changed!: () => void;
    const reading = slowly(server, `select x, s, t from ${name}`, new Promise<void>((resolve) => changed = resolve));
    await wait(100);
    await ok(server, change.replaceAll("NAME", name));
    // Freed memory is reused immediately.
    await ok(server, `create table again${k} as (select x, 'other' || x s from long_sequence(200000))`);
    await ok(server, "checkpoint create");
    await ok(server, "checkpoint release");
    changed();
    const rows = await reading;
    assert.equal(rows.length, ROWS, change);
    for (let row = 0; row < ROWS; row += 997) {
      assert.equal(rows[row], `${row + 1},"s${(row + 1) % 1000}","a longer text of row ${row + 1}"`, change);
    }
  }
  assert.doesNotMatch(server.output(), CRITICAL);
});

Deno.test("writers over HTTP, PG and line protocol on one table, with readers and schema changes between", async () => {
  await using server = await startServer({
    env: { SVC_CAIRO_CHECKPOINT_LOG_SIZE: "1m", SVC_CAIRO_CHECKPOINT_INTERVAL: "1s" },
  });
  await ok(
    server,
    "create table t (client symbol, n long, text varchar, ts timestamp) timestamp(ts) partition by hour",
  );
  const COUNT = 30, BATCH = 20;
  const time = (n: number, k: number) => n * 60_000_000 + k - (n % 7) * 1_800_000_000 + 100_000_000_000;
  const overHttp = async (client: string) => {
    for (let n = 0; n < COUNT; n++) {
      const rows = Array.from({ length: BATCH }, (_, k) => `('${client}', ${n}, 'text ${n}', ${time(n, k)})`);
      await ok(server, `insert into t (client, n, text, ts) values ${rows}`);
    }
  };
  const overPg = async (client: string) => {
    const connection = pgClient(server);
    await connection.connect();
    for (let n = 0; n < COUNT; n++) {
      await connection.query("begin");
      for (let k = 0; k < BATCH; k++) {
        await connection.query("insert into t (client, n, text, ts) values ($1, $2, $3, $4::long::timestamp)", [
          client,
          n,
          `text ${n}`,
          time(n, k),
        ]);
      }
      await connection.query("commit");
    }
    await connection.end();
  };
  const overLines = async (client: string) => {
    for (let n = 0; n < COUNT; n++) {
      const lines = Array.from(
        { length: BATCH },
        (_, k) => `t,client=${client} n=${n}i,text="text ${n}" ${time(n, k)}\n`,
      );
      const reply = await fetch(`${server.http}/write?precision=u`, { method: "POST", body: lines.join("") });
      assert.equal(reply.status, 204, await reply.text());
    }
  };
  const overTcp = async (client: string) => {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.linePort });
    for (let n = 0; n < COUNT; n++) {
      const lines = Array.from(
        { length: BATCH },
        (_, k) => `t,client=${client} n=${n}i,text="text ${n}" ${time(n, k)}000\n`,
      );
      await connection.write(new TextEncoder().encode(lines.join("")));
      await wait(1);
    }
    connection.close();
  };
  let running = true;
  const reading = (async () => {
    while (running) {
      // Commits are seen as a whole.
      const torn = await ok(server, "select client, n, count() c from t where client != 'tcp' group by client, n");
      assert.deepEqual(torn.filter(([, , count]) => count !== BATCH), []);
    }
  })();
  const changing = (async () => {
    for (let k = 0; running; k++) {
      await ok(server, `alter table t add column c${k} double`);
      await ok(server, `alter table t rename column c${k} to d${k}`);
      await ok(server, `alter table t drop column d${k}`);
      await ok(server, `create table side${k} (n long)`);
      await ok(server, `drop table side${k}`);
      await wait(20);
    }
  })();
  const others = Promise.all([reading, changing]).catch((error) => error);
  try {
    await Promise.all([
      ...["h1", "h2"].map(overHttp),
      ...["p1", "p2"].map(overPg),
      ...["l1", "l2"].map(overLines),
      overTcp("tcp"),
    ]);
  } finally {
    running = false;
    assert.ok(!(await others instanceof Error), String(await others));
  }
  const count = async () => Number((await ok(server, "select count() from t"))[0][0]);
  for (const deadline = Date.now() + 10_000; Date.now() < deadline && await count() < 7 * COUNT * BATCH;) {
    await wait(20);
  }
  assert.deepEqual(
    await ok(server, "select client, count() c, count_distinct(n) d from t order by client"),
    ["h1", "h2", "l1", "l2", "p1", "p2", "tcp"].map((client) => [client, COUNT * BATCH, COUNT]),
  );
  assert.deepEqual(
    await ok(server, "select count() from (select ts, lag(ts) over () before from t) where before > ts"),
    [[0]],
  );
  assert.deepEqual(await ok(server, "select count() from t where text != 'text ' || n"), [[0]]);
  assert.doesNotMatch(server.output(), CRITICAL);
});

Deno.test("each of many clients that insert a row at once is told about its own row", async () => {
  await using server = await startServer();
  await ok(server, "create table t (x long, ts timestamp) timestamp(ts) partition by day");
  const clients: { query(query: object): Promise<unknown>; end(): Promise<void> }[] = [];
  for (let k = 0; k < 16; k++) clients.push(await connectedPg(server));
  const inserted: number[] = [], refused: number[] = [];
  try {
    for (let round = 0; round < 20; round++) {
      await Promise.all(clients.map(async (client, k) => {
        const x = 1000 * round + k, time = (round + k) % 8 === 0 ? null : x;
        try {
          await client.query({ name: "insert", text: "insert into t values ($1, $2)", values: [x, time] });
          inserted.push(x);
        } catch (error) {
          assert.equal(time, null, String(error));
          refused.push(x);
        }
      }));
    }
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
  assert.equal(refused.length, 40);
  const rows = await ok(server, "select x from t order by x");
  assert.deepEqual(rows.map(([x]) => x), inserted.toSorted((a, b) => a - b));
});
