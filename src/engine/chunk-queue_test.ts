import assert from "node:assert/strict";
import { ChunkQueue, type ResultChunk } from "./chunk-queue.ts";

const chunk = (rows: number): ResultChunk => ({ bytes: new Uint8Array(rows), rows });

async function rowsOf(queue: ChunkQueue): Promise<number[]> {
  const rows: number[] = [];
  for await (const chunk of queue) rows.push(chunk.rows);
  return rows;
}

Deno.test("ChunkQueue hands a whole result over, or lets it be iterated", async () => {
  const asked = new ChunkQueue(), whole = asked.whole();
  asked.endWith([chunk(3)]);
  assert.deepEqual((await whole)?.map(({ rows }) => rows), [3]);
  const iterated = new ChunkQueue();
  iterated.endWith([chunk(3), chunk(4)]);
  assert.deepEqual(await rowsOf(iterated), [3, 4]);
});

Deno.test("ChunkQueue has no whole result if there is a chunk or an end before", async () => {
  for (const isAskedFirst of [true, false]) {
    const queue = new ChunkQueue(), early = isAskedFirst ? queue.whole() : undefined;
    queue.push(chunk(1));
    assert.equal(await (early ?? queue.whole()), undefined);
    queue.push(chunk(2));
    queue.end();
    assert.deepEqual(await rowsOf(queue), [1, 2]);
  }
  const empty = new ChunkQueue(), whole = empty.whole();
  empty.end();
  assert.equal(await whole, undefined);
  assert.deepEqual(await rowsOf(empty), []);
});

Deno.test("ChunkQueue frees a chunk when its reader asks for the next one, and those that are never read", async () => {
  for (const how of ["fails", "is left"] as const) {
    const queue = new ChunkQueue(), freed: number[] = [];
    queue.onFreed = (sizeBytes) => freed.push(sizeBytes);
    for (const rows of [1, 2, 3, 4]) queue.push(chunk(rows));
    await queue.next();
    assert.deepEqual(freed, []);
    await queue.next();
    assert.deepEqual(freed, [1]);
    if (how === "fails") {
      queue.fail(new Error("no luck"));
      assert.deepEqual(freed, [1, 3, 4]);
      await assert.rejects(queue.next(), /no luck/);
    } else await queue.return();
    assert.deepEqual(freed.toSorted(), [1, 2, 3, 4]);
  }
});

Deno.test("ChunkQueue tells a failure once, to the one who waits or who reads next", async () => {
  const asked = new ChunkQueue(), whole = asked.whole();
  asked.fail(new Error("no luck"));
  await assert.rejects(whole, /no luck/);
  const before = new ChunkQueue();
  before.fail(new Error("no luck"));
  assert.equal(await before.whole(), undefined);
  await assert.rejects(rowsOf(before), /no luck/);
  const later = new ChunkQueue(), first = later.whole();
  later.push(chunk(1));
  later.fail(new Error("no luck"));
  assert.equal(await first, undefined);
  await assert.rejects(rowsOf(later), /no luck/);
});
