/**
 * What late rows cost that belong to many partitions at once, within the engine: without HTTP and without fsync. Each batch has rows
 * of all days, in no order. Batches are merged with idle query threads and without them, in turn.
 *
 *     deno run -A bench/late.ts [rows of a day, default 200000] [days, default 30] [rows of a batch, default 10000] [batches, default 40]
 *         [query threads, default 2] [stored: a checkpoint follows each batch, so that chunks are read again]
 */
import { MAIL, Mailboxes } from "../src/engine/mailbox.ts";
import type { AppendBatch } from "../src/storage/contract.ts";
import { createHeap } from "../src/storage/heap.ts";
import { SharedMergers } from "../src/storage/merge-jobs.ts";
import { newTable } from "../src/storage/test-rows.ts";
import { median } from "./report.ts";
import { newRoot, openStore } from "./stores.ts";

const DAY = 86_400_000_000;
const [dayRows, days, batchRows, batches, threads] = [200_000, 30, 10_000, 40, 2].map((n, k) =>
  Number(Deno.args[k] ?? n)
);
const isStored = Deno.args[5] === "stored";
const SYMBOLS = 100;

let state = 1;
function random(): number {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) / 2 ** 32;
}

/** Trades at these times. */
function batchAt(times: Float64Array): AppendBatch {
  const count = times.length;
  const codes = Int32Array.from(times, () => Math.floor(random() * SYMBOLS));
  const names = Array.from({ length: SYMBOLS }, (_, k) => new TextEncoder().encode(`SYM${100 + k}`));
  const symbols = Int32Array.from({ length: 2 * SYMBOLS }, (_, k) => k % 2 === 0 ? 3 * k : 6);
  const bytesOf = (values: ArrayBufferView) => new Uint8Array(values.buffer as ArrayBuffer);
  return {
    rowCount: count,
    columns: [
      { columnId: 0, values: bytesOf(BigInt64Array.from(times, (time) => BigInt(time))) },
      { columnId: 1, values: bytesOf(codes), heap: new Uint8Array(names.flatMap((name) => [...name])), symbols },
      { columnId: 2, values: bytesOf(Float64Array.from(times, () => Math.round(random() * 1e6) / 100)) },
      { columnId: 3, values: bytesOf(Float64Array.from(times, () => random())) },
      { columnId: 4, values: bytesOf(BigInt64Array.from(times, () => BigInt(Math.floor(random() * 1e6)))) },
    ],
  };
}

const root = newRoot();
const heap = createHeap(2 ** 31), mailboxes = Mailboxes.create(threads);
let mayHelp = true;
const { store, execute: run } = openStore(heap, root, {
  mergers: new SharedMergers(heap, {
    hasIdle: () => mayHelp && mailboxes.hasIdle(threads),
    wakeIdle: () => mailboxes.wakeIdle(-1, threads, Math.max(1, navigator.hardwareConcurrency - 1)) > 0,
  }),
  random,
  poolBytes: 64 << 20,
});

const columns = { ts: "TIMESTAMP", symbol: "SYMBOL", price: "DOUBLE", amount: "DOUBLE", trader: "LONG" };
run({ kind: "createTable", table: newTable("trades", columns, "ts", "DAY") });
for (let day = 0; day < days; day++) {
  const times = Float64Array.from({ length: dayRows }, (_, k) => day * DAY + Math.floor(k * DAY / dayRows));
  run({ kind: "append", changes: [{ tableId: 1, batches: [batchAt(times)] }] });
  run({ kind: "checkpoint" });
}
const workers: Worker[] = [];
for (let seat = 0; seat < threads; seat++) {
  const worker = new Worker(new URL("./late-worker.ts", import.meta.url), { type: "module" });
  worker.postMessage({ memory: heap.memory, mailboxes: mailboxes.buffer, seat });
  await new Promise((resolve) => worker.onmessage = resolve);
  workers.push(worker);
}

const alone: number[] = [], together: number[] = [];
for (let k = 0; k < batches; k++) {
  mayHelp = k % 2 === 1;
  const batch = batchAt(Float64Array.from({ length: batchRows }, () => Math.floor(random() * days * DAY)));
  const start = performance.now();
  run({ kind: "append", changes: [{ tableId: 1, batches: [batch] }] });
  (mayHelp ? together : alone).push(performance.now() - start);
  if (isStored) run({ kind: "checkpoint" });
  store.maintain();
}
console.log(`${batchRows} late rows into ${days} days of ${dayRows} rows, ms a batch`);
for (const [name, took] of [["the writer alone", alone], [`with ${threads} query threads`, together]] as const) {
  console.log(`${name}: ${took.map(Math.round).join(" ")}, median ${median(took).toFixed(1)}`);
}
console.log(`ratio of the medians ${(median(alone) / median(together)).toFixed(2)}`);
for (let seat = 0; seat < threads; seat++) mailboxes.post(seat, MAIL.close);
run({ kind: "close" });
Deno.removeSync(root, { recursive: true });
