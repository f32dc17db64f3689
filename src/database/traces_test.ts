import assert from "node:assert/strict";
import type { AppendBatch } from "../storage/mod.ts";
import { Traces } from "./traces.ts";

/** With the numbers of traces that are written together. */
function tracesOf(): { traces: Traces; written: number[] } {
  const written: number[] = [];
  const columns = ["TIMESTAMP", "VARCHAR", "LONG", "SYMBOL"].map((type, id) => ({ id, type }));
  const traces = new Traces({
    catalogue: { table: () => ({ schema: { id: 1, columns } }) } as never,
    writer: {
      append: ([{ batches }]: [{ batches: AppendBatch[] }]) => {
        written.push(batches.reduce((sum, { rowCount }) => sum + rowCount, 0));
        return Promise.resolve();
      },
    } as never,
    session: () => ({ execute: () => Promise.resolve({ kind: "done" }) }) as never,
    nowMicros: () => 0n,
    onError: (error) => assert.fail(String(error)),
  });
  return { traces, written };
}

const end = (text: string) => ({ text, micros: 1, user: "admin" }) as never;

Deno.test("traces of long statements are dropped when those that wait take much memory", async () => {
  const { traces, written } = tracesOf();
  for (let k = 0; k < 100; k++) traces.add(end(`select ${" ".repeat(1_000_000)} ${k}`));
  await traces.flush();
  for (let k = 0; k < 10; k++) traces.add(end(`select ${" ".repeat(1_000_000)} ${k}`));
  await traces.flush();
  assert.deepEqual(written, [16, 10]);
});
