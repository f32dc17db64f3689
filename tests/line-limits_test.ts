/** Limits on the cost of a line-protocol request: the error names the line, and nothing of the request is stored. */
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { residentBytes } from "./memory.ts";
import { startServer, type TestServer } from "./server.ts";

async function write(server: TestServer, body: BodyInit, headers: HeadersInit = {}) {
  const reply = await fetch(`${server.http}/write`, { method: "POST", headers, body });
  const text = await reply.text();
  return { status: reply.status, text, line: /"line":(\d+)/.exec(text)?.[1] };
}

async function* repeated(text: string, count: number): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const piece = new TextEncoder().encode(text);
  for (let k = 0; k < count; k++) yield piece;
}

async function* pieces(...texts: string[]): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (const text of texts) yield new TextEncoder().encode(text);
}

/** Resident memory. */
function mebibytes(server: TestServer): number {
  return residentBytes(server.process.pid) / 2 ** 20;
}

async function countOf(server: TestServer, table: string): Promise<unknown> {
  return (await server.exec(`select count() from ${table}`)).dataset?.[0][0];
}

Deno.test("tables and columns that lines before a faulty one name are made, without rows", async () => {
  await using server = await startServer();
  assert.equal((await write(server, "known,s=x a=1i 1\n")).status, 204);
  const refused: [body: string, line: string][] = [
    ['typed v=1i 1000\ntyped v="x",w=1 2000\ntyped v=3i,x=2 3000\n', "2"],
    ["known a=2i,b=1.5 2\nfirst,t=x a=1\nknown a=3i,c=?\nlast a=1\n", "3"],
    ["never a=\nalso a=1\n", "1"],
  ];
  for (const [body, line] of refused) {
    const reply = await write(server, body);
    assert.equal(reply.status, 400, reply.text);
    assert.equal(reply.line, line, body);
  }
  const columns = async (table: string) =>
    (await server.exec(`show columns from ${table}`)).dataset!.map(([name]) => name);
  assert.deepEqual(await columns("typed"), ["v", "timestamp"]);
  assert.deepEqual(await columns("first"), ["t", "a", "timestamp"]);
  assert.deepEqual(await columns("known"), ["s", "a", "timestamp", "b"]);
  assert.deepEqual((await server.exec("select table_name, table_row_count from tables() order by 1")).dataset, [
    ["first", 0],
    ["known", 1],
    ["typed", 0],
  ]);
  assert.equal((await write(server, "typed v=4i 1\nfirst,t=y a=2 2\nknown b=2 3\n")).status, 204);
  assert.deepEqual((await server.exec("select b from known")).dataset, [[null], [2]]);
});

Deno.test("limits of a line-protocol request are reported with the line, and nothing of it is stored", async () => {
  await using server = await startServer({
    env: {
      SVC_LINE_TCP_MAX_MEASUREMENT_SIZE: "64k",
      SVC_LINE_AUTO_CREATE_NEW_TABLES_MAX: "3",
      SVC_LINE_AUTO_CREATE_NEW_COLUMNS_MAX: "20",
      SVC_LINE_MEMORY_SIZE: "4m",
      SVC_LINE_HTTP_MAX_RECV_BUFFER_SIZE: "64m",
    },
  });
  assert.equal((await write(server, "kept a=1i\n")).status, 204);
  const long = `kept s="${"x".repeat(70_000)}"`;
  const columns = (count: number) => Array.from({ length: count }, (_, k) => `c${k}=1i`).join(",");
  const refused: [title: string, body: BodyInit, line: string, message: RegExp][] = [
    ["a long line", `kept a=2i\n${long}\nkept a=3i\n`, "2", /longer than 65536 bytes/],
    ["a line without end", ReadableStream.from(repeated("x".repeat(65_536), 300)), "1", /longer than 65536 bytes/],
    ["many tables", "kept a=2i\nn1 a=1\nn2 a=1\nn3 a=1\nn4 a=1\n", "5", /more than 3 tables/],
    ["many columns", `kept a=2i\nkept a=2i\nwide ${columns(21)}\n`, "3", /more than 20 columns/],
    [
      "a later piece",
      ReadableStream.from(pieces("n1 a=1i\n", "kept b=1i,c=2i,a=2i\n".repeat(20_000), "kept a=1q\n")),
      "20002",
      /1q/,
    ],
    ["many rows", ReadableStream.from(repeated("kept a=2i\n".repeat(100_000), 20)), "", /more than 4194304 bytes/],
  ];
  for (const [title, body, line, message] of refused) {
    const reply = await write(server, body);
    assert.equal(reply.status, 400, `${title}: ${reply.text}`);
    assert.match(reply.text, message);
    if (line !== "") assert.equal(reply.line, line, title);
  }
  const tables = (await server.exec("select table_name, table_row_count from tables()")).dataset;
  assert.deepEqual(tables, [["kept", 1], ["n1", 0]], "requests of too many tables or columns create none");
  const kept = (await server.exec("show columns from kept")).dataset!.map(([name]) => name);
  assert.deepEqual(kept, ["a", "timestamp", "b", "c"], "columns of lines before a faulty one stay");
  const newlines = gzipSync(new Uint8Array(32 << 20).fill(0x0a));
  const gzip = { "content-encoding": "gzip" };
  assert.equal((await write(server, new Uint8Array(newlines), gzip)).status, 413);
  assert.equal((await write(server, ReadableStream.from(repeated("\n".repeat(1 << 20), 65)))).status, 413);
  assert.equal((await write(server, new Uint8Array(newlines.subarray(0, 1000)), gzip)).status, 415);
  assert.equal((await write(server, "no gzip at all", gzip)).status, 415);
  assert.equal((await write(server, "", gzip)).status, 204);
  assert.equal(await countOf(server, "kept"), 1);
  assert.equal((await write(server, new Uint8Array(gzipSync("kept a=2i\n\n".repeat(10))), gzip)).status, 204);
  assert.equal(await countOf(server, "kept"), 11);
});

Deno.test("rows with one field each but many different fields are refused before they take memory as columns", async () => {
  await using server = await startServer({ env: { SVC_LINE_MEMORY_SIZE: "64m", SVC_METRICS_ENABLED: "true" } });
  const rows = (count: number) => Array.from({ length: count }, (_, k) => `wide c${k % 1_000}=1i\n`).join("");
  assert.equal((await write(server, rows(1_000))).status, 204);
  const reply = await write(server, rows(20_000));
  assert.equal(reply.status, 400, reply.text);
  assert.match(reply.text, /the rows before it take more than 67108864 bytes/);
  assert.equal(await countOf(server, "wide"), 1_000);
  // Requests with fewer rows are accepted.
  for (let k = 0; k < 10; k++) assert.equal((await write(server, rows(1_000))).status, 204);
  assert.equal(await countOf(server, "wide"), 11_000);
  assert.deepEqual((await server.exec("select count(c0), sum(c999) from wide")).dataset, [[11, 11]]);
  const metrics = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
  assert.match(metrics, /unhandled_errors_total 0/);
});

Deno.test("requests that together hold more rows than the limit wait for each other", async () => {
  await using server = await startServer({ env: { SVC_LINE_MEMORY_SIZE: "64m" } });
  const lines = "t a=1i,b=2i,c=3i,d=4i 1700000000000000000\n".repeat(25_000);
  const replies = await Promise.all(
    Array.from({ length: 6 }, () => write(server, ReadableStream.from(repeated(lines, 20)))),
  );
  assert.deepEqual(replies.map(({ status, text }) => `${status} ${text}`), new Array(6).fill("204 "));
  assert.equal(await countOf(server, "t"), 6 * 20 * 25_000);
});

Deno.test("bodies without lines take no memory and block nobody", { ignore: Deno.build.os !== "linux" }, async () => {
  await using server = await startServer({ env: { SVC_LINE_HTTP_INFLATE_RATIO_MAX: "2000" } });
  await write(server, "t a=1i\n");
  // Made before health is asked, as this blocks the thread that asks.
  const newlines = gzipSync(new Uint8Array(512 << 20).fill(0x0a), { level: 9 });
  const before = mebibytes(server);
  let most = 0, waitedMs = 0, isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const startMs = performance.now();
      await (await fetch(`http://127.0.0.1:${server.minPort}/status`)).body?.cancel();
      waitedMs = Math.max(waitedMs, performance.now() - startMs);
      most = Math.max(most, mebibytes(server));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  assert.equal((await write(server, new Uint8Array(newlines), { "content-encoding": "gzip" })).status, 204);
  assert.equal((await write(server, ReadableStream.from(repeated("x".repeat(1 << 20), 300)))).status, 400);
  isOver = true;
  await watching;
  console.log(`resident ${before.toFixed()} → ${most.toFixed()} MiB, health ${waitedMs.toFixed()} ms`);
  assert.ok(most < before + 300, `${before} → ${most} MiB`);
  assert.ok(waitedMs < 5_000, `health took ${waitedMs} ms`);
});

Deno.test("requests that create the same table at once, with other columns and types, agree on it", async () => {
  await using server = await startServer();
  const bodies = Array.from({ length: 12 }, (_, k) => {
    const types = [`both=${k}i`, `both=${k}.0`][k % 2];
    return `fresh c${k % 4}=${k}i,${types}\nfresh d${k % 3}="x",both=${k}i\n`;
  });
  const replies = await Promise.all(bodies.map((body) => write(server, body)));
  const accepted = replies.filter(({ status }) => status === 204).length;
  for (const { status, text } of replies) assert.ok(status === 204 || /column both has type/.test(text), text);
  const columns = (await server.exec("show columns from fresh")).dataset!.map(([name]) => String(name));
  assert.equal(new Set(columns).size, columns.length);
  // A refused request may have added its columns or not.
  const sum = columns.filter((name) => /^c\d$/.test(name)).map((name) => `count(${name})`).join(" + ");
  const { dataset, error } = await server.exec(`select count(), count(both), ${sum} from fresh`);
  assert.deepEqual(dataset, [[2 * accepted, 2 * accepted, accepted]], error);
});
