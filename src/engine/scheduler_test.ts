import assert from "node:assert/strict";
import { createHeap } from "../storage/heap.ts";
import { createScheduler, type QueryOrder, type RunningQuery } from "./scheduler.ts";
import { SLOT, SLOT_COUNT, slotWord } from "./slot.ts";

/** A worker whose queries send `chunks` chunks of one byte, at most four in flight, as their plans say. */
const FAITHFUL = `
  let words;
  const parked = new Map();
  const advance = (id, query) => {
    for (; query.left > 0; query.left--) {
      if (Atomics.load(words, query.cancel) !== 0) {
        return postMessage({ type: "failed", id, error: { name: "SqlError", message: "stopped", position: 0, sqlState: "57014" } });
      }
      if (Atomics.load(words, query.underway) >= 4) {
        parked.set(id, query);
        return postMessage({ type: "parked", id });
      }
      Atomics.add(words, query.underway, 1);
      postMessage({ type: "chunk", id, bytes: new Uint8Array(1), rows: 1 });
    }
    postMessage({ type: "done", id, totalRows: query.rows });
  };
  self.onmessage = ({ data }) => {
    const { type, id, request } = data;
    if (type === "attach") {
      words = new Int32Array(data.memory.buffer);
      postMessage({ type: "ready" });
    } else if (type === "query") {
      const { plan, slot } = request;
      if (plan.dies) throw new Error("out of luck");
      advance(id, {
        left: plan.chunks,
        rows: plan.chunks,
        underway: ${slotWord(0, SLOT.chunksUnderway)} + slot * ${slotWord(1, 0) - slotWord(0, 0)},
        cancel: ${slotWord(0, SLOT.cancel)} + slot * ${slotWord(1, 0) - slotWord(0, 0)},
      });
    } else if (type === "resume") {
      const query = parked.get(id);
      parked.delete(id);
      advance(id, query);
    } else if (type === "task") postMessage({ type: "result", id, value: data.payload });
  };`;

const scheduler = (source: string, workerCount: number) => {
  const logged: string[] = [];
  const made = createScheduler({
    heap: createHeap(1 << 20),
    workerCount,
    workerUrl: new URL(`data:application/javascript,${encodeURIComponent(source)}`),
    log: (level, message) => logged.push(`${level} ${message}`),
  });
  return Object.assign(made, { logged });
};

const order = (plan: unknown): QueryOrder =>
  ({ plan, sources: [], nowMicros: 0n, timeoutMs: 0, memoryLimitBytes: 0, user: "" }) as unknown as QueryOrder;

async function count({ chunks }: RunningQuery): Promise<number> {
  let rows = 0;
  for await (const chunk of chunks) rows += chunk.rows;
  return rows;
}

Deno.test("Scheduler: workers that cannot start are retried with growing delays, and waiting queries fail", async () => {
  const broken = scheduler(`throw new Error("no luck")`, 2);
  await assert.rejects(() => count(broken.run(order({ chunks: 1 }), {})), /no query worker can be started.*no luck/);
  await assert.rejects(() => broken.task("any", 1), /no query worker can be started.*no luck/);
  assert.ok(broken.logged.length <= 10, `${broken.logged.length} attempts`);
  await broken.close();
});

Deno.test("Scheduler: a worker that throws on attaching counts as one that cannot start", async () => {
  const broken = scheduler(`self.onmessage = () => { throw new Error("no luck"); }`, 1);
  await assert.rejects(() => count(broken.run(order({ chunks: 1 }), {})), /no query worker can be started.*no luck/);
  await broken.close();
});

Deno.test("Scheduler: a query that ends its worker fails alone, however often", async () => {
  const made = scheduler(FAITHFUL, 2);
  for (let k = 0; k < 3; k++) {
    const [good] = await Promise.all([
      count(made.run(order({ chunks: 3 }), {})),
      assert.rejects(
        () => count(made.run(order({ dies: true }), {})),
        /the worker that ran the query failed.*out of luck/,
      ),
    ]);
    assert.equal(good, 3);
  }
  await made.close();
});

Deno.test("Scheduler: readers that pause occupy no worker, and get everything when they continue", async () => {
  const made = scheduler(FAITHFUL, 2);
  const slow = Array.from({ length: SLOT_COUNT - 1 }, () => made.run(order({ chunks: 100 }), {}));
  assert.equal(await count(made.run(order({ chunks: 50 }), {})), 50);
  assert.equal(await made.task("any", 7), 7);
  assert.deepEqual(await Promise.all(slow.map(count)), slow.map(() => 100));
  await made.close();
});

Deno.test("Scheduler: a query that is cancelled ends at once, waiting, parked or before its slot", async () => {
  const made = scheduler(FAITHFUL, 1);
  const parked = Array.from({ length: SLOT_COUNT }, () => made.run(order({ chunks: 100 }), {}));
  const waiting = made.run(order({ chunks: 1 }), {});
  waiting.cancel();
  await waiting.ended;
  await assert.rejects(() => count(waiting), /cancelled by the user/);
  await new Promise((resolve) => setTimeout(resolve, 100));
  for (const query of parked) query.cancel();
  await Promise.all(parked.map(({ ended }) => ended));
  assert.equal(await count(made.run(order({ chunks: 5 }), {})), 5);
  await made.close();
});
