/**
 * What was acknowledged survives SIGKILL. The server is killed at random moments under load, started again on the same root, and asked
 * for every row that a client was told is written. KILLS=200 repeats it as often.
 */
import assert from "node:assert/strict";
import { startServer } from "./server.ts";

const KILLS = Number(Deno.env.get("KILLS") ?? "6");
const ROWS_PER_WRITE = 50;

Deno.test(`acknowledged rows survive ${KILLS} kills`, async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-kill-" });
  /** By table: writes sent so far, and those that were acknowledged. */
  const acknowledged = [new Set<number>(), new Set<number>(), new Set<number>()];
  let sent = 0;
  try {
    for (let kill = 0; kill <= KILLS; kill++) {
      const server = await startServer({ root });
      for (const [table, writes] of acknowledged.entries()) {
        if (writes.size === 0) continue;
        const reply = await server.exec(`select write, count() from k${table}`);
        assert.ok(reply.dataset, `after kill ${kill}: ${reply.error}`);
        const found = new Map(reply.dataset.map(([write, count]) => [Number(write), Number(count)]));
        for (const write of writes) {
          assert.equal(
            found.get(write),
            ROWS_PER_WRITE,
            `write ${write} to k${table} was acknowledged; after kill ${kill} it has another number of rows`,
          );
        }
        for (const [write, count] of found) {
          assert.equal(count, ROWS_PER_WRITE, `write ${write} to k${table} is torn after kill ${kill}`);
        }
      }
      if (kill === KILLS) {
        assert.equal(await server.stop(), 0);
        break;
      }
      let running = true;
      const clients = acknowledged.map(async (writes, table) => {
        while (running) {
          const write = sent++;
          const lines = Array.from(
            { length: ROWS_PER_WRITE },
            (_, i) =>
              `k${table},tag=s${write % 17} write=${write}i,v=${i}.5,text="row ${i}" ${
                1_700_000_000_000_000 + write * 1_000_000 - (write % 5) * 7_000_000 + i
              }`,
          );
          try {
            const reply = await fetch(`${server.http}/write?precision=u`, {
              method: "POST",
              body: lines.join("\n") + "\n",
            });
            await reply.body?.cancel();
            if (reply.status === 204) writes.add(write);
            else throw new Error(`/write answered ${reply.status}`);
          } catch (error) {
            if (running && !(error instanceof TypeError)) throw error; // the connection broke: the server is dead
            return;
          }
        }
      });
      await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 1_000));
      running = false;
      server.process.kill("SIGKILL");
      await Promise.all(clients);
      await server.process.status;
    }
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
