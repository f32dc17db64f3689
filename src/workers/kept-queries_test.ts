import assert from "node:assert/strict";
import type { OutputOptions } from "../database/output.ts";
import type { Letter, ReadRequest } from "../engine/letter.ts";
import { CountedMemory } from "../engine/memory.ts";
import type { FunctionRegistry } from "../engine/contract.ts";
import { SLOT, slotWord } from "../engine/slot.ts";
import type { Plan } from "../sql/plan.ts";
import { createHeap } from "../storage/mod.ts";
import { cancelWordOf, type Context, KeptQueries, type Lead } from "./kept-queries.ts";

const heap = createHeap(16 << 20);
const OUTPUT = { kind: "rows", encoding: { name: "json", quoteLargeNumbers: true } } as unknown as OutputOptions;
const SENT = { sources: [], words: new Float64Array(0) };
const PLANS = Array.from({ length: 200 }, () => ({ node: "values", rows: [] }) as unknown as Plan);
const registry = { resolve: () => ({ entry: { volatility: "volatile" } }) } as unknown as FunctionRegistry;

function requestOf(planName: number, slot: number, more: Partial<ReadRequest> = {}): ReadRequest {
  return { planName, slot, user: "admin", memoryLimitBytes: 0, nowMicros: 1n, sent: SENT, ...more } as ReadRequest;
}

const letterOf = (request: ReadRequest) => ({ request, output: OUTPUT }) as unknown as Letter;

class Queries {
  nowMs = 0;
  readonly closed: number[] = [];
  readonly kept = new KeptQueries(registry, () => assert.fail("no sources"), () => this.nowMs);

  /** A query of a plan that has run with this many bytes, and is kept if it can be. */
  run(planName: number, slot: number, bytes = 4096, plan = PLANS[planName]): boolean {
    const request = requestOf(planName, slot), memory = new CountedMemory(heap, 0, slotWord(slot, SLOT.memoryUnits));
    memory.allocate(bytes, "test");
    const context = {
      ...{ request, heap, memory, sources: [], leads: true, rowsToRead: 0, nowMicros: 0n },
      cancelWord: cancelWordOf(request),
      pool: { release: () => {} },
      countToRead: () => {},
    } as unknown as Context;
    const lead = {
      ...{ plan, context, operators: context, options: OUTPUT, usedMs: 0 },
      output: { rewind: () => {} },
      operator: { rewind: () => true, close: () => void this.closed.push(planName) },
      held: { pieces: [], bytes: 0, rows: 0, since: 0 },
    } as unknown as Lead;
    if (!this.kept.rewind(lead)) return false;
    this.kept.keep(lead);
    return true;
  }
}

const unitsOf = (slot: number) => heap.i32[slotWord(slot, SLOT.memoryUnits)];

Deno.test("KeptQueries gives a query to one execution, whose slot counts its memory", () => {
  const queries = new Queries(), before = heap.usedBytes();
  assert.ok(queries.run(1, 3));
  assert.equal(unitsOf(3), 0, "no query counts the memory");
  const lead = queries.kept.take(PLANS[1], letterOf(requestOf(1, 5, { nowMicros: 7n })))!;
  assert.ok(unitsOf(5) > 0);
  assert.deepEqual([lead.context.nowMicros, lead.context.cancelWord], [7n, cancelWordOf(requestOf(1, 5))]);
  assert.equal(queries.kept.take(PLANS[1], letterOf(requestOf(1, 6))), undefined, "another execution has it");
  assert.ok(queries.kept.rewind(lead));
  queries.kept.keep(lead);
  assert.equal(unitsOf(5), 0);
  queries.kept.close();
  assert.deepEqual([queries.closed, heap.usedBytes()], [[1], before]);
});

Deno.test("KeptQueries gives a query only to the same plan, user, limit and output", () => {
  const queries = new Queries();
  queries.run(1, 3);
  const take = (plan: Plan, request: ReadRequest, output = OUTPUT) =>
    queries.kept.take(plan, { request, output } as unknown as Letter);
  assert.equal(take(PLANS[1], requestOf(2, 5)), undefined);
  assert.equal(take(PLANS[2], requestOf(1, 5)), undefined, "the number has another plan by now");
  assert.equal(take(PLANS[1], requestOf(1, 5, { user: "alice" })), undefined);
  assert.equal(take(PLANS[1], requestOf(1, 5, { memoryLimitBytes: 1 << 20 })), undefined);
  const csv = { kind: "rows", encoding: { name: "csv", delimiter: "," } } as unknown as OutputOptions;
  assert.equal(take(PLANS[1], requestOf(1, 5), csv), undefined);
  assert.ok(take(PLANS[1], requestOf(1, 5)) !== undefined);
});

Deno.test("KeptQueries keeps few queries, the last ones, and none that is large or calls what may change", () => {
  const queries = new Queries();
  assert.equal(queries.run(1, 3, 1 << 20), false);
  const call = { node: "values", rows: [], at: { kind: "call", function: "rnd()" } } as unknown as Plan;
  assert.equal(queries.run(1, 3, 4096, call), false);
  for (let name = 0; name < 100; name++) assert.ok(queries.run(name, 3));
  assert.deepEqual(queries.closed, Array.from({ length: 36 }, (_, name) => name));
  for (let count = 0; count < 6; count++) queries.run(99, 3);
  assert.equal(queries.closed.filter((name) => name === 99).length, 3, "four of a plan");
  const { length } = queries.closed;
  for (let name = 100; name < 140; name++) assert.ok(queries.run(name, 3, 200 << 10));
  assert.ok(queries.closed.length > length + 40, "4 MiB in all");
  queries.kept.close();
});

Deno.test("KeptQueries closes queries of statements that are gone, and those that are not used", () => {
  const queries = new Queries();
  queries.run(1, 3);
  queries.run(2, 3);
  queries.kept.forget(1);
  assert.deepEqual(queries.closed, [1]);
  assert.equal(queries.kept.take(PLANS[1], letterOf(requestOf(1, 5))), undefined);
  queries.nowMs = 4_000;
  queries.run(3, 3);
  queries.nowMs = 7_000;
  queries.kept.closeUnused();
  assert.deepEqual(queries.closed, [1, 2]);
  queries.nowMs = 20_000;
  queries.kept.closeUnused();
  assert.deepEqual(queries.closed, [1, 2, 3]);
});
