/** fetch() of Node and of Deno. */
import assert from "node:assert/strict";
import process from "node:process";

const [base, rows, requests] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const name = "Deno" in globalThis ? "deno" : "node";
const url = (path, query) => `${base}${path}?${new URLSearchParams({ query, nm: "true" })}`;
const execute = async (query) => (await (await fetch(url("/exec", query))).json()).dataset;
const post = (path, body, headers = {}) => fetch(base + path, { method: "POST", body, headers, duplex: "half" });

assert.deepEqual(await execute("select 1"), [[1]]);
const json = JSON.stringify({ query: "select $1", parameters: [2] });
const posted = await post("/exec", json, { "content-type": "application/json" });
assert.deepEqual((await posted.json()).dataset, [[2]]);
assert.deepEqual((await (await post("/exec", new URLSearchParams({ query: "select 1" }))).json()).dataset, [[1]]);
const lines = new ReadableStream({
  start(controller) {
    for (const value of [2, 3]) controller.enqueue(new TextEncoder().encode(`${name} v=${value}i\n`));
    controller.close();
  },
});
for (const body of [`${name} v=1i\n`, lines]) assert.equal((await post("/write", body)).status, 204);
assert.deepEqual(await execute(`select count() from ${name}`), [[3]]);
let count = 0;
const reply = await fetch(url("/exp", `select x from long_sequence(${rows})`));
for await (const chunk of reply.body) for (const byte of chunk) if (byte === 10) count++;
assert.equal(count, rows);
const aborting = new AbortController();
const endless = await fetch(url("/exp", "select x from long_sequence(100000000000)"), { signal: aborting.signal });
await endless.body.getReader().read();
aborting.abort();
assert.equal((await fetch(`${base}/settings`, { method: "HEAD" })).status, 200);
const all = await Promise.all(Array.from({ length: 100 }, (_, n) => execute(`select ${n}`)));
assert.deepEqual(all, Array.from({ length: 100 }, (_, n) => [[n]]));
for (let n = 0; n < requests; n++) assert.deepEqual(await execute("select 1"), [[1]]);
console.log("ok");
