import assert from "node:assert/strict";
import { Segments } from "./segments.ts";

interface Item {
  id: number;
  rowCount: number;
}

function randomOf(seed: number): () => number {
  let state = seed * 2654435761 >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

Deno.test("Segments equals an array under random splices, and its differences repeat each change", () => {
  for (let seed = 1; seed <= 8; seed++) {
    const random = randomOf(seed);
    let id = 0;
    const items = (count: number): Item[] =>
      Array.from({ length: count }, () => ({ id: id++, rowCount: 1 + Math.floor(random() * 9) }));
    let list = items(Math.floor(random() * 3000));
    let segments = Segments.of(list);
    for (let round = 0; round < 60; round++) {
      const before = segments;
      for (let changes = 1 + Math.floor(random() * 4); changes > 0; changes--) {
        const start = random() < 0.3 ? list.length : Math.floor(random() * (list.length + 1));
        const count = Math.min(list.length - start, Math.floor(random() ** 4 * 2000));
        const added = items(Math.floor(random() ** 4 * 1500));
        list = list.toSpliced(start, count, ...added);
        segments = segments.splice(start, count, added);
      }
      if (random() < 0.1) {
        const isKept = ({ id }: Item) => id % 7 !== round % 7;
        list = list.filter(isKept);
        segments = segments.map((item) => (isKept(item) ? item : undefined));
      }
      assert.deepEqual([...segments], list);
      assert.equal(segments.length, list.length);
      assert.equal(segments.rowCount, list.reduce((sum, { rowCount }) => sum + rowCount, 0));
      assert.deepEqual([...before.apply(segments.differenceFrom(before))], list);
      const index = Math.floor(random() * list.length), to = Math.floor(random() * (list.length + 5));
      assert.equal(segments.at(index), list.at(index));
      assert.equal(segments.at(-1 - index), list.at(-1 - index));
      assert.deepEqual(segments.slice(index, to), list.slice(index, to));
      const firstRow = list.slice(0, index).reduce((sum, { rowCount }) => sum + rowCount, 0);
      assert.equal(segments.firstRowOf(index), firstRow);
      if (list.length > 0) assert.deepEqual(segments.indexOfRow(firstRow), { index, firstRow });
      const places = new Map(list.map((item, place) => [item, place]));
      assert.equal(segments.search((item) => places.get(item)! < index), index);
    }
  }
});

Deno.test("a change of Segments shares the pages that it does not touch", () => {
  const before = Segments.of(Array.from({ length: 100_000 }, (_, id) => ({ id, rowCount: 1 })));
  const after = before.with(50_000, { id: -1, rowCount: 2 }).splice(100_000, 0, [{ id: -2, rowCount: 1 }]);
  const shared = new Set(before.pages);
  assert.ok(after.pages.filter((page) => !shared.has(page)).length <= 3);
  assert.deepEqual(after.differenceFrom(before).map(({ start, count }) => [start, count]), [[50_000, 1], [100_000, 0]]);
});
