/** Query workers keep the schemas of tables. Whatever has changed since, lines go to the columns that the tables have now. */
import assert from "node:assert/strict";
import { startServer, type TestServer } from "./server.ts";

/** Texts of fewer bytes are parsed on the main thread. */
const ROWS = 500;

async function write(server: TestServer, body: string) {
  const reply = await fetch(`${server.http}/write`, { method: "POST", body });
  const text = await reply.text();
  return { status: reply.status, text, line: /"line":(\d+)/.exec(text)?.[1] };
}

/** Each worker parses a text some time. */
async function accepted(server: TestServer, line: string): Promise<void> {
  for (let k = 0; k < 4; k++) {
    const { status, text } = await write(server, `${line}\n`.repeat(ROWS));
    assert.equal(status, 204, text);
  }
}

async function rowsOf(server: TestServer, sql: string): Promise<unknown> {
  const { error, dataset } = await server.exec(sql);
  assert.equal(error, undefined, sql);
  return dataset;
}

Deno.test("lines follow changes of their tables", async () => {
  await using server = await startServer({ env: { SVC_SHARED_WORKER_COUNT: "2" } });
  const columns = async (table: string) =>
    ((await rowsOf(server, `show columns from ${table}`)) as string[][]).map(([name, type]) => `${name} ${type}`);

  await accepted(server, "a,s=x v=1.5,n=1i");
  const made = ["s SYMBOL", "v DOUBLE", "n LONG", "timestamp TIMESTAMP"];
  assert.deepEqual(await columns("a"), made);

  await rowsOf(server, "alter table a rename column v to w");
  await accepted(server, "a,s=x v=2.5,n=1i");
  assert.deepEqual(await columns("a"), ["s SYMBOL", "w DOUBLE", "n LONG", "timestamp TIMESTAMP", "v DOUBLE"]);
  assert.deepEqual(await rowsOf(server, "select count(), count(w), count(v), sum(w), sum(v) from a"), [
    [8 * ROWS, 4 * ROWS, 4 * ROWS, 6 * ROWS, 10 * ROWS],
  ]);

  await rowsOf(server, "alter table a drop column n");
  await rowsOf(server, "alter table a add column n int");
  await accepted(server, "A,s=x n=7i");
  assert.deepEqual(await rowsOf(server, "select count(n), sum(n) from a"), [[4 * ROWS, 28 * ROWS]]);

  await rowsOf(server, "drop table a");
  await accepted(server, "a,s=y v=1.5,n=1i");
  assert.deepEqual(await columns("a"), made, "a new table");
  await rowsOf(server, "rename table a to b");
  await accepted(server, "b,s=y v=1.5,n=1i");
  await accepted(server, "a,s=z v=1.5,n=1i");
  assert.deepEqual(await rowsOf(server, "select s, count() from a"), [["z", 4 * ROWS]]);
  assert.deepEqual(await rowsOf(server, "select s, count() from b"), [["y", 8 * ROWS]]);

  await rowsOf(server, "drop table a");
  await rowsOf(server, "create table a (n byte, v float, s varchar, t timestamp_ns) timestamp(t) partition by hour");
  await accepted(server, "a,s=z v=0.1,n=1i 1700000000000000001");
  assert.deepEqual(await rowsOf(server, "select n, v, s, t, count() from a"), [
    [1, 0.1, "z", "2023-11-14T22:13:20.000000001Z", 4 * ROWS],
  ]);
});

Deno.test("the first bad line of a text is reported, whatever the workers know of its tables", async () => {
  await using server = await startServer({ env: { SVC_SHARED_WORKER_COUNT: "2" } });
  await accepted(server, "k,s=x v=1.5,n=1i,b=t");
  const good = "k,s=x v=1.5,n=1i,b=t\n".repeat(ROWS);
  const cases: [title: string, lines: string, line: number, message: RegExp][] = [
    ["a misfit before another in a table that is not known", 'k b=1i\nu x=1\nu x="t"\n', 1, /BOOLEAN/],
    ["a misfit in a table that is not known before another", 'u x=1\nu x="t"\nk b=1i\n', 2, /DOUBLE/],
    ["a misfit before a text that cannot be read", "k b=1i\nk v=1q\n", 1, /BOOLEAN/],
    ["a misfit after one that cannot be read", "k v=1q\nk b=1i\n", 1, /1q/],
    ["a new column with a misfit", 'k c=1\nk c=2\nk c="t"\n', 3, /DOUBLE/],
    ["a misfit in a known column beside a new one", 'k c=1\nk b=2\nk c="t"\n', 2, /BOOLEAN/],
    ["a column in the bad line only", "k v=1\nk d=1,v=1q\n", 2, /1q/],
  ];
  for (let k = 0; k < 2; k++) {
    for (const [title, lines, line, message] of cases) {
      const reply = await write(server, good + lines + good);
      assert.equal(reply.status, 400, title);
      assert.equal(reply.line, String(ROWS + line), `${title}: ${reply.text}`);
      assert.match(reply.text, message, title);
    }
  }
  assert.deepEqual(await rowsOf(server, "select count() from k"), [[4 * ROWS]]);
  // What good lines before the bad one name is made.
  assert.deepEqual(await rowsOf(server, "select table_name, table_row_count from tables()"), [["k", 4 * ROWS], [
    "u",
    0,
  ]]);
  assert.deepEqual((await rowsOf(server, "show columns from k") as string[][]).map(([name]) => name), [
    ...["s", "v", "n", "b", "timestamp", "c"],
  ]);
});

Deno.test("requests that create the same tables and columns at the same time all succeed", async () => {
  await using server = await startServer({ env: { SVC_SHARED_WORKER_COUNT: "2" } });
  const fields = ["a=1.5", "b=2i", "c=t", 'd="x"'];
  const bodies = Array.from({ length: 8 }, (_, k) => {
    const rotated = [...fields.slice(k % 4), ...fields.slice(0, k % 4)];
    // The first is still being parsed when others have made the tables.
    const count = k === 0 ? 1_500 : 40;
    return Array.from({ length: 20 }, (_, t) => `Race${t},s=${k} ${rotated.join()}\n`.repeat(count)).join("");
  });
  const replies = await Promise.all(bodies.map((body) => write(server, body)));
  for (const { status, text } of replies) assert.equal(status, 204, text);
  for (let t = 0; t < 20; t++) {
    assert.deepEqual(await rowsOf(server, `select count(s), sum(a), sum(b), count(d), c from race${t}`), [
      [1_780, 2_670, 3_560, 1_780, true],
    ]);
  }
  // Two requests plan the column with different types. One is told to send its lines again, and the second time it fits.
  const [one, other] = await Promise.all(
    ["1i", "1.5"].map((value) => write(server, `race0 e=${value}\n`.repeat(ROWS))),
  );
  const failed = [one!, other!].filter(({ status }) => status !== 204);
  for (const { status, text } of failed) {
    assert.ok(status === 503 ? /send the lines again/.test(text) : status === 400 && /LONG/.test(text), text);
  }
});

Deno.test("the tables that a request makes are made durable together", async () => {
  await using server = await startServer({ env: { SVC_DEV_SYNC_DELAY: "20ms", SVC_METRICS_ENABLED: "true" } });
  const syncs = async () => {
    const text = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
    return Number(/^service_fsync_seconds_count (\d+)/m.exec(text)![1]);
  };
  const before = await syncs();
  const lines = Array.from({ length: 40 }, (_, k) => `t${k} v=${k}i\n`).join("");
  const { status } = await fetch(`${server.http}/write`, { method: "POST", body: lines });
  assert.equal(status, 204);
  const count = await syncs() - before;
  // The first table, those that came during its sync, and the rows.
  assert.ok(count >= 2 && count <= 10, `${count} syncs`);
  assert.deepEqual((await server.exec("select sum(v) from t7")).dataset, [[7]]);
  assert.deepEqual((await server.exec("select count() from tables()")).dataset, [[40]]);
});
