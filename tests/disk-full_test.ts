/** A full disk is reported as such on every wire and by health, and the server recovers when there is space. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { startServer } from "./server.ts";
import { smallDisk } from "./small-disk.ts";
import { pgClient } from "./pg-client.ts";

const disk = smallDisk(64);

/** Fills all remaining space. */
function fill(path: string): void {
  using file = Deno.openSync(path, { create: true, append: true });
  for (let size = 1 << 20; size >= 1;) {
    try {
      file.writeSync(new Uint8Array(size));
    } catch {
      size >>= 1;
    }
  }
}

Deno.test({
  name: "a full disk: 507 by HTTP, 53100 by PG, 500 with its reason by health, until there is room",
  ignore: disk === undefined,
  fn: async () => {
    const { directory } = disk!;
    const root = join(directory, "root");
    const env = { SVC_METRICS_ENABLED: "true", SVC_HTTP_PESSIMISTIC_HEALTH_CHECK_ENABLED: "true" };
    try {
      await using server = await startServer({ root, env });
      const client = pgClient(server);
      await client.connect();
      try {
        await server.exec("create table t (x long, s varchar)");
        const health = async () => {
          const reply = await fetch(`http://127.0.0.1:${server.minPort}/`);
          return [reply.status, await reply.text()];
        };
        assert.deepEqual(await health(), [200, ""]);
        const filler = join(directory, "filler");
        fill(filler);
        const insert = "insert into t select x, repeat('x', 100) from long_sequence(20000)";
        const exec = () => fetch(`${server.http}/exec?${new URLSearchParams({ query: insert })}`);
        // The log has some preallocated space.
        let refused = await exec();
        for (let count = 0; count < 50 && refused.ok; count++) {
          await refused.body?.cancel();
          refused = await exec();
        }
        assert.equal(refused.status, 507);
        assert.match((await refused.json()).error, /the disk is full/);
        await assert.rejects(client.query(insert), { code: "53100" });
        const lines = Array.from({ length: 20_000 }, (_, row) => `t x=${row}i,s="${"y".repeat(100)}"\n`).join("");
        const write = await fetch(`${server.http}/write`, { method: "POST", body: lines });
        assert.equal(write.status, 507);
        assert.match((await write.json()).message, /the disk is full/);
        assert.deepEqual(await health(), [500, "the disk is full: changes are refused\r\n"]);
        assert.match(
          await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text(),
          /\nservice_disk_full 1\n/,
        );
        // Queries are answered throughout.
        const { dataset } = await server.exec("select count() from t");
        Deno.removeSync(filler);
        assert.deepEqual(await server.exec(insert), { dml: "OK" });
        assert.deepEqual(await health(), [200, ""]);
        const after = await server.exec("select count() from t");
        assert.equal(Number(after.dataset![0][0]), Number(dataset![0][0]) + 20_000);
      } finally {
        await client.end();
      }
    } finally {
      disk!.remove();
    }
  },
});
