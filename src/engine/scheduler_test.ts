import assert from "node:assert/strict";
import v8 from "node:v8";
import vm from "node:vm";
import { createHeap } from "../storage/heap.ts";
import { createScheduler, type QueryOrder, type RunningQuery } from "./scheduler.ts";
import type { Notify } from "./mailbox.ts";
import { ResultRoom } from "./result-room.ts";
import { SLOT, SLOT_COUNT, slotWord } from "./slot.ts";
import { randomFrom } from "./testing.ts";
import type { FakePlan } from "./testing/scheduler-worker.ts";
import { SEED } from "../testing.ts";

/** A worker whose queries do what their plans say. */
const FAITHFUL = new URL("./testing/scheduler-worker.ts", import.meta.url);

const scheduler = (
  worker: string | URL,
  workerCount: number,
  options: Partial<Parameters<typeof createScheduler>[0]> = {},
) => {
  const logged: string[] = [], heap = createHeap(8 << 20);
  const made = createScheduler({
    heap,
    workerCount,
    workerUrl: worker instanceof URL ? worker : new URL(`data:application/javascript,${encodeURIComponent(worker)}`),
    log: (level, message) => logged.push(`${level} ${message}`),
    busyMicros: 50,
    ...options,
  });
  return Object.assign(made, { logged, heap });
};

const order = (plan: FakePlan, options: Partial<QueryOrder> = {}): QueryOrder =>
  ({
    plan,
    sources: [],
    nowMicros: 0n,
    timeoutMs: 0,
    memoryLimitBytes: 0,
    user: "",
    ...options,
  }) as unknown as QueryOrder;

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
        () => count(made.run(order({ dies: "before the answer" }), {})),
        /the worker that ran the query failed.*out of luck/,
      ),
    ]);
    assert.equal(good, 3);
  }
  await made.close();
});

Deno.test("Scheduler: a rest is told once after each time of work", async () => {
  const restMs = 200;
  let rests = 0;
  const made = scheduler(FAITHFUL, 1, { restMs, onRest: () => rests++ });
  await pause(4 * restMs);
  assert.equal(rests, 0, "there was no work yet");
  for (const expected of [1, 2]) {
    await count(made.run(order({ chunks: 1 }), {}));
    for (const end = Date.now() + 20_000; rests < expected;) {
      assert.ok(Date.now() < end, "the rest comes");
      await pause(10);
    }
    await pause(4 * restMs);
    assert.equal(rests, expected);
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

Deno.test("Scheduler: what is on the way to readers is bounded in all, and small chunks never wait for those of others", async () => {
  const made = scheduler(FAITHFUL, 2), room = new ResultRoom(made.heap), chunkBytes = 4 << 20;
  const large = Array.from({ length: 10 }, () => made.run(order({ chunks: 3, chunkBytes }), {}));
  while (room.usedBytes === 0) await pause(1);
  // Its reader takes nothing, so the others wait.
  await pause(100);
  assert.equal(room.usedBytes, chunkBytes);
  const small = Array.from({ length: 10 }, () => made.run(order({ chunks: 100, chunkBytes: 1_024 }), {}));
  assert.deepEqual(await Promise.all(small.map(count)), Array(10).fill(100));
  assert.deepEqual(await Promise.all(large.map(count)), Array(10).fill(3));
  assert.equal(room.usedBytes, 0);
  await made.close();
});

Deno.test("Scheduler: results that were not read are no longer on the way when their readers have gone", async () => {
  const made = scheduler(FAITHFUL, 2), room = new ResultRoom(made.heap);
  const begin = async (chunks: number) => {
    const { chunks: source } = made.run(order({ chunks, chunkBytes: 10_000 }), {}),
      reader = source[Symbol.asyncIterator]();
    await reader.next();
    await pause(20);
    return reader;
  };
  // The first one has ended when its reader goes, the second one is parked.
  for (const reader of [await begin(4), await begin(100)]) {
    assert.ok(room.usedBytes > 0);
    await reader.return?.();
  }
  await made.close();
  assert.equal(room.usedBytes, 0);
});

Deno.test("Scheduler: a result that is not read ends when others wait for room", async () => {
  const made = scheduler(FAITHFUL, 2, { stallMs: 200 }), chunkBytes = 4 << 20;
  const unread = made.run(order({ chunks: 3, chunkBytes }), {});
  while (unread.statistics().state !== "sending") await pause(1);
  assert.equal(await count(made.run(order({ chunks: 3, chunkBytes }), {})), 3);
  await assert.rejects(() => count(unread), /stopped/);
  await made.close();
});

Deno.test("Scheduler: a query that is cancelled ends at once, waiting, parked or before its slot", async () => {
  const made = scheduler(FAITHFUL, 1);
  const parked = Array.from({ length: SLOT_COUNT }, () => made.run(order({ chunks: 100 }), {}));
  const waiting = made.run(order({ chunks: 1 }), {});
  waiting.cancel();
  await waiting.ended;
  await assert.rejects(() => count(waiting), /cancelled by the user/);
  await pause(100);
  for (const query of parked) query.cancel();
  await Promise.all(parked.map(({ ended }) => ended));
  assert.equal(await count(made.run(order({ chunks: 5 }), {})), 5);
  await made.close();
});

Deno.test("Scheduler: a small query does not wait for long ones that hold all workers, and other queries and tasks do not take its place", async () => {
  const made = scheduler(FAITHFUL, 2);
  const long = [1, 2].map(() => made.run(order({ runs: true }), {}));
  while (long.some((query) => query.statistics().state !== "running")) await pause(1);
  const other = made.run(order({ answer: "other" }), {});
  const tasks = [1, 2, 3].map((value) => made.task("any", value));
  for (let k = 0; k < 3; k++) {
    assert.equal(await count(made.run(order({ answer: "small" }, { isSmall: () => true }), {})), 5);
  }
  // It is parked there, and continues there.
  assert.equal(await count(made.run(order({ chunks: 100 }, { isSmall: () => true }), {})), 100);
  assert.deepEqual(await Promise.all(tasks), [1, 2, 3]);
  assert.deepEqual(long.map((query) => query.statistics().state), ["running", "running"]);
  assert.equal(other.statistics().state, "waiting");
  long[0].cancel();
  assert.equal(await count(other), 5);
  long[1].cancel();
  for (const query of long) await assert.rejects(() => count(query), /stopped/);
  await made.close();
});

Deno.test("Scheduler: workers beside the others are started some time after they may be needed, or when all others are busy", async () => {
  const { Worker: RealWorker } = globalThis, names: string[] = [];
  globalThis.Worker = class extends RealWorker {
    constructor(url: string | URL, options?: WorkerOptions) {
      super(url, options);
      names.push(options!.name!);
    }
  };
  try {
    const made = scheduler(FAITHFUL, 3);
    assert.equal(await count(made.run(order({ answer: "small" }, { isSmall: () => true }), {})), 5);
    assert.equal(names.length, 3);
    assert.equal(await count(made.run(order({ answer: "longer" }), {})), 6);
    assert.equal(names.length, 3, "the first query has all cores");
    while (names.length < 4) await pause(10);
    assert.deepEqual(names.slice(3), ["exec-4"]);
    const long = [1, 2, 3].map(() => made.run(order({ runs: true }), {}));
    while (long.some((query) => query.statistics().state !== "running")) await pause(1);
    assert.equal(await made.task("any", 7), 7);
    assert.deepEqual(names.slice(3), ["exec-4", "exec-3"]);
    for (const query of long) query.cancel();
    for (const query of long) await assert.rejects(() => count(query), /stopped/);
    await made.close();
  } finally {
    globalThis.Worker = RealWorker;
  }
});

Deno.test("Scheduler: the reader of a parked query hears of its cancel while its worker runs a long query", async () => {
  const made = scheduler(FAITHFUL, 1);
  const parked = made.run(order({ chunks: 100 }), {});
  while (parked.statistics().state !== "sending") await pause(1);
  const long = made.run(order({ runs: true }), {});
  while (long.statistics().state !== "running") await pause(1);
  parked.cancel();
  await assert.rejects(() => count(parked), /cancelled by the user/);
  assert.equal(long.statistics().state, "running");
  long.cancel();
  await assert.rejects(() => count(long), /stopped/);
  await parked.ended;
  await made.close();
});

Deno.test("Scheduler: a query that waits for a worker or for a slot fails at its time-out", async () => {
  const made = scheduler(FAITHFUL, 1);
  const running = Array.from({ length: SLOT_COUNT }, () => made.run(order({ runs: true }), {}));
  const inTime = { timeoutMs: 100 };
  const waiting = [...running.splice(SLOT_COUNT - 1), made.run(order({ answer: "x" }, inTime), {})];
  waiting[0].cancel();
  await assert.rejects(() => count(waiting[0]), /cancelled by the user/);
  await assert.rejects(() => count(waiting[1]), /ran longer than its time-out of 100 ms/);
  for (const query of running) query.cancel();
  await Promise.allSettled(running.map(count));
  assert.equal(await count(made.run(order({ answer: "x" }, { timeoutMs: 60_000 }), {})), 1);
  await made.close();
});

Deno.test("Scheduler: a query given to a worker that is just ending is given to another one", async () => {
  const made = scheduler(FAITHFUL, 1);
  assert.equal(await count(made.run(order({ answer: "x" }), {})), 1);
  for (let k = 0; k < 3; k++) {
    made.crash("on purpose");
    assert.equal(await count(made.run(order({ answer: "x" }), {})), 1);
  }
  await made.close();
});

Deno.test("Scheduler: with slow readers, cancels, workers that end and lost wakes, every query ends, and nothing is left", async () => {
  const random = randomFrom(SEED), dice = (below: number) => random() % below;
  const lossy: Notify = (words, index) => void (dice(50) > 0 && Atomics.notify(words, index));
  const made = scheduler(FAITHFUL, 2, { notify: lossy }), before = made.heap.usedBytes();
  const outcomes = new Map<string, number>();
  const tell = (what: string) => void outcomes.set(what, 1 + (outcomes.get(what) ?? 0));
  const ask = async (plan: FakePlan, wanted: number, options: Partial<QueryOrder> = {}) => {
    const query = made.run(order(plan, options), {});
    const isCancelled = dice(8) === 0;
    if (isCancelled) setTimeout(() => query.cancel(), dice(20));
    try {
      let rows = 0;
      const isSlow = dice(3) === 0;
      for await (const chunk of query.chunks) {
        rows += chunk.rows;
        if (isSlow) await pause(dice(10));
      }
      assert.equal(rows, wanted);
      tell("answered");
    } catch (error) {
      const { message } = error as Error;
      assert.match(
        message,
        /cancelled by the user|stopped|the worker that ran the query failed|out of luck/,
        `SEED=${SEED}`,
      );
      tell(message.slice(0, 20));
    }
    await query.ended;
  };
  const client = async () => {
    for (let n = 0; n < 5; n++) {
      const kind = dice(100);
      if (kind === 0) await ask({ answer: "xx", dies: dice(2) ? "before the answer" : "after the answer" }, 2);
      else if (kind < 15) {
        await made.task("any", 1).catch((error) => assert.match(error.message, /the worker that parsed/));
      } else if (kind < 50) await ask({ chunks: 30 }, 30);
      else await ask({ answer: "xyz" }, 3, { isSmall: () => dice(2) === 0 });
    }
  };
  const crashes = async () => {
    for (let n = 0; n < 3; n++) {
      await ask({ answer: "xyz" }, 3);
      made.crash("on purpose");
    }
  };
  await Promise.all([crashes(), ...Array.from({ length: SLOT_COUNT + 16 }, client)]);
  assert.ok(outcomes.get("answered")! > 100, JSON.stringify([...outcomes]));
  assert.equal(made.heap.usedBytes(), before);
  assert.equal(await count(made.run(order({ answer: "x" }), {})), 1);
  await made.close();
});

Deno.test("Scheduler: a small result comes back in shared memory, and so does an error", async () => {
  const made = scheduler(FAITHFUL, 1);
  const [chunk] = await Array.fromAsync(made.run(order({ answer: "some bytes" }), {}).chunks);
  assert.deepEqual([new TextDecoder().decode(chunk.bytes), chunk.rows], ["some bytes", 10]);
  assert.deepEqual(await Array.fromAsync(made.run(order({ answer: "" }), {}).chunks), []);
  await assert.rejects(() => count(made.run(order({ fails: "on purpose" }), {})), /on purpose/);
  await made.close();
});

Deno.test("Scheduler: requests, results and long requests leave no memory in use, also if the client has gone", async () => {
  const made = scheduler(FAITHFUL, 2);
  const before = made.heap.usedBytes();
  const long = { answer: "x", comment: "y".repeat(100_000) };
  const abandoned = [1, 2, 3].map(() => made.run(order({ answer: "unread" }), {}));
  const cancelled = made.run(order(long), {});
  cancelled.cancel();
  await Promise.all([...abandoned, cancelled].map(({ ended }) => ended));
  assert.equal(await count(made.run(order(long), {})), 1);
  await assert.rejects(() => count(made.run(order({ ...long, dies: "before the answer" }), {})), /out of luck/);
  assert.equal(made.heap.usedBytes(), before);
  await made.close();
});

Deno.test("Scheduler: a request that the shared memory has no room for fails alone", async () => {
  const made = scheduler(FAITHFUL, 1);
  const large = made.run(order({ answer: "x", comment: "y".repeat(9 << 20) }), {});
  await assert.rejects(() => count(large), /the server's shared memory is full/);
  assert.equal(await count(made.run(order({ answer: "x" }), {})), 1);
  await made.close();
});

Deno.test("Scheduler: lost wakes delay a query but do not lose it", async () => {
  let lost = 0;
  const made = scheduler(FAITHFUL, 1, { notify: () => void lost++ });
  for (let k = 0; k < 2; k++) assert.equal(await count(made.run(order({ answer: "x", tellsNobody: true }), {})), 1);
  assert.ok(lost >= 2, `${lost} wakes were lost`);
  await made.close();
});

Deno.test("Scheduler: a worker that ends after its answer has answered", async () => {
  const made = scheduler(FAITHFUL, 1);
  for (let k = 0; k < 3; k++) {
    assert.equal(await count(made.run(order({ answer: "x", dies: "after the answer", tellsNobody: true }), {})), 1);
    // A query that is given to the worker before main knows of its end fails.
    await pause(200);
  }
  await made.close();
});

Deno.test("Scheduler: a plan is sent to a worker once, again if the worker has forgotten it, and freed when nothing refers to it", async () => {
  const made = scheduler(FAITHFUL, 1);
  const known = async (plan: FakePlan) => {
    const [{ bytes }] = await Array.fromAsync(made.run(order(plan), {}).chunks);
    return JSON.parse(new TextDecoder().decode(bytes)) as { received: number; known: number };
  };
  const plan: FakePlan = { tellsPlans: true };
  assert.deepEqual(await known(plan), { received: 1, known: 1 });
  assert.deepEqual(await known(plan), { received: 1, known: 1 });
  assert.deepEqual(await known({ tellsPlans: true }), { received: 2, known: 2 });
  assert.deepEqual(await eventually(() => known(plan), ({ known }) => known === 1), { received: 2, known: 1 });
  const forgetful: FakePlan = { tellsPlans: true, forgets: true };
  assert.deepEqual(await known(forgetful), { received: 3, known: 0 });
  assert.deepEqual(await known(forgetful), { received: 4, known: 0 });
  assert.deepEqual(await known(plan), { received: 5, known: 1 });
  await made.close();
});

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

Deno.test("Scheduler: a request whose plan is known serialises neither the plan nor more for a longer one", async () => {
  const made = scheduler(FAITHFUL, 1);
  const bytes = async (plan: FakePlan) => {
    const { i32 } = made.heap, word = (offset: number) => i32[slotWord(0, offset)];
    const sizes: number[][] = [];
    for (let k = 0; k < 2; k++) {
      assert.equal(await count(made.run(order(plan), {})), 1);
      sizes.push([word(SLOT.requestText), word(SLOT.requestPlan)]);
    }
    return sizes;
  };
  const [[text, plan], again] = await bytes({ answer: "x" });
  assert.ok(plan > 0 && text < 300, `${text} bytes of text`);
  assert.deepEqual(again, [text, 0]);
  const [, longer] = await bytes({ answer: "x", comment: "y".repeat(20_000) });
  assert.deepEqual(longer, [text, 0]);
  await made.close();
});

/** Collects garbage until the answer is as wanted. */
async function eventually<T>(ask: () => Promise<T>, isWanted: (answer: T) => boolean): Promise<T> {
  v8.setFlagsFromString("--expose-gc");
  const collect = vm.runInNewContext("gc") as () => void;
  for (let answer = await ask(), k = 0;; answer = await ask(), k++) {
    if (isWanted(answer) || k === 20) return answer;
    collect();
    await pause(10);
  }
}
