import assert from "node:assert/strict";
import { Workspace } from "./columns.ts";
import { createQueryMemory } from "./memory.ts";
import { Payload, sortRows } from "./row-sort.ts";
import { randomFrom, testContext, threeParticipants } from "./testing.ts";
import { type KeySource, wordSource } from "./wasm/sort.ts";

/** Words of keys with few values, with many, with one frequent value, and with high halves of doubles. */
const KINDS: Record<string, (random: () => number) => number> = {
  few: (random) => random() % 7,
  many: (random) => random() | 0,
  lopsided: (random) => (random() % 20 > 0 ? 5 : random()),
  same: () => -1,
  narrow: (random) => 0x40590000 + random() % 5_000,
};

Deno.test("rows are sorted stably by any number of words, in few and many chunks, by one participant and by three", () => {
  const shapes = [
    ["many"],
    ["few"],
    ["same", "narrow"],
    ["lopsided", "many"],
    ["few", "few", "many"],
    ["same", "same", "lopsided", "lopsided", "few"],
    ["few", "few", "few", "few", "few", "few", "many", "few"],
    ["same", "same", "same", "same", "same", "same", "same", "few"],
  ];
  for (const rowCount of [2, 17, 1_000, 20_000, 280_000]) {
    for (const shape of shapes) {
      for (const isParallel of rowCount < 100_000 ? [false] : [false, true]) {
        const context = testContext(1 << 28), random = randomFrom(rowCount);
        const space = Workspace.of(context, "sort");
        const words = shape.map((kind) => {
          const word = space.words(rowCount);
          for (let row = 0; row < rowCount; row++) word[row] = KINDS[kind](random);
          return word;
        });
        const order = space.words(rowCount);
        for (let row = 0; row < rowCount; row++) order[row] = row;
        // The payload: the row's number, and its first word as eight bytes.
        const numbers = space.words(rowCount), wide = space.allocate(rowCount * 8);
        for (let row = 0; row < rowCount; row++) {
          numbers[row] = row;
          context.heap.i64[wide / 8 + row] = BigInt(words[0][row]);
        }
        const payload = new Payload(
          [{ type: "INT", address: numbers.byteOffset }, { type: "LONG", address: wide }],
          space,
        );
        const parallel = isParallel ? threeParticipants(context) : undefined;
        const sources: KeySource[] = [];
        for (let w = 0; w < words.length; w += 2) {
          sources.push(wordSource(words[w].byteOffset, words[w + 1]?.byteOffset ?? 0));
        }
        sortRows(order, sources, rowCount, space, () => {}, parallel, payload);
        assert.equal(payload.isPlaced, rowCount > 100_000 && shape.length <= 6, `${shape}`);
        let rows = order;
        if (payload.isPlaced) {
          rows = space.words(rowCount);
          const out = space.allocate(rowCount * 8);
          payload.take(order, rowCount, [{ type: "INT", address: rows.byteOffset }, { type: "LONG", address: out }]);
          for (let k = 0; k < rowCount; k++) {
            if (context.heap.i64[out / 8 + k] !== BigInt(words[0][rows[k]])) assert.fail(`value ${k} of ${shape}`);
          }
        }
        for (let k = 1; k < rowCount; k++) {
          const a = rows[k - 1], b = rows[k];
          let difference = 0;
          for (let w = 0; w < words.length && difference === 0; w++) {
            difference = (words[w][a] >>> 0) - (words[w][b] >>> 0);
          }
          if (difference > 0 || (difference === 0 && a >= b)) assert.fail(`row ${k} of ${rowCount} by ${shape}`);
        }
        space.release();
        assert.equal(context.memory.usedBytes, 0);
      }
    }
  }
});

Deno.test("with little memory fewer keys are stored with a row", () => {
  const context = testContext(1 << 27), rowCount = 80_000, random = randomFrom(1);
  const plenty = Workspace.of(context, "test");
  const words = Array.from({ length: 6 }, () => {
    const word = plenty.words(rowCount);
    for (let row = 0; row < rowCount; row++) word[row] = random() % 12;
    return word;
  });
  const sources = [0, 2, 4].map((w) => wordSource(words[w].byteOffset, words[w + 1].byteOffset));
  const order = plenty.words(rowCount);
  const needed: number[] = [];
  for (const limitBytes of [10_000_000, 6_000_000, 3_000_000]) {
    const memory = createQueryMemory(context.heap, limitBytes);
    for (let row = 0; row < rowCount; row++) order[row] = row;
    sortRows(
      order,
      sources,
      rowCount,
      new Workspace(context.heap, memory, "sort"),
      () => needed.push(memory.usedBytes),
    );
    for (let k = 1; k < rowCount; k++) {
      let difference = 0;
      for (let w = 0; w < 6 && difference === 0; w++) difference = words[w][order[k - 1]] - words[w][order[k]];
      if (difference > 0 || (difference === 0 && order[k - 1] >= order[k])) {
        assert.fail(`row ${k}, ${limitBytes} bytes`);
      }
    }
    assert.ok(Math.max(...needed.splice(0)) <= limitBytes);
    assert.equal(memory.usedBytes, 0);
  }
  const memory = createQueryMemory(context.heap, 1_000_000);
  const space = new Workspace(context.heap, memory, "sort");
  assert.throws(
    () => sortRows(order, sources, rowCount, space, () => {}),
    /^SqlError: sort needs .* limit of 1000000 bytes/,
  );
  assert.equal(memory.usedBytes, 0);
});
