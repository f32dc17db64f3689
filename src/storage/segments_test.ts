import assert from "node:assert/strict";
import { LIMITS } from "./packing.ts";
import { type Segment, Segments } from "./segments.ts";
import { spliced } from "./splices.ts";
import { Disk } from "./test-disk.ts";

function randomOf(seed: number): () => number {
  let state = seed * 2654435761 >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

const segmentOf = (uid: number, rowCount: number): Segment => (
  { uid, partition: 0n, rowCount, timestampMin: 0n, timestampMax: 0n, chunks: [] }
);

const plain = (segments: Iterable<Segment>) => Array.from(segments, ({ uid, rowCount }) => [uid, rowCount]);

Deno.test("Segments equals an array under random splices, in memory and on disk, and its differences repeat each change", () => {
  const { listMax, listMin } = LIMITS;
  for (let seed = 1; seed <= 8; seed++) {
    // Also with many lists.
    Object.assign(LIMITS, seed % 2 === 0 ? { listMax, listMin } : { listMax: 3, listMin: 2 });
    const random = randomOf(seed), disk = new Disk();
    let uid = 0;
    const items = (count: number) =>
      Array.from({ length: count }, () => segmentOf(++uid, 1 + Math.floor(random() * 9)));
    let list = items(Math.floor(random() * 3000));
    let segments = Segments.of(list);
    for (let round = 0; round < 30; round++) {
      const before = segments;
      for (let changes = 1 + Math.floor(random() * 4); changes > 0; changes--) {
        const start = random() < 0.3 ? list.length : Math.floor(random() * (list.length + 1));
        const count = Math.min(list.length - start, Math.floor(random() ** 4 * 2000));
        const added = items(Math.floor(random() ** 4 * 1500));
        list = list.toSpliced(start, count, ...added);
        segments = segments.splice(start, count, added);
      }
      if (random() < 0.1) {
        const isKept = ({ uid }: Segment) => uid % 7 !== round % 7;
        list = list.filter(isKept);
        segments = segments.map((item) => (isKept(item) ? item : undefined));
      }
      if (random() < 0.3) segments = segments.mapPages((page) => [random() < 0.8 ? disk.sealed(page) : page]);
      if (random() < 0.3) {
        segments = segments.mapLists((list) => {
          const isSealed = list.pages.every(({ extent }) => extent !== undefined) && random() < 0.7;
          return isSealed ? [disk.sealedList(list, random() < 0.5)] : [list];
        });
      }
      assert.deepEqual(plain(segments), plain(list));
      assert.equal(segments.length, list.length);
      assert.equal(segments.rowCount, list.reduce((sum, { rowCount }) => sum + rowCount, 0));
      assert.deepEqual(spliced(before.lists, segments.differenceFrom(before)), segments.lists);
      assert.deepEqual(plain(Segments.ofParts(segments.parts)), plain(list));
      const index = Math.floor(random() * list.length), to = Math.floor(random() * (list.length + 5));
      assert.equal(segments.at(index)?.uid, list.at(index)?.uid);
      assert.equal(segments.at(-1 - index)?.uid, list.at(-1 - index)?.uid);
      assert.deepEqual(plain(segments.slice(index, to)), plain(list.slice(index, to)));
      const firstRow = list.slice(0, index).reduce((sum, { rowCount }) => sum + rowCount, 0);
      assert.equal(segments.firstRowOf(index), firstRow);
      if (list.length === 0) continue;
      assert.deepEqual(segments.indexOfRow(firstRow), { index, firstRow });
      const { uid, rowCount } = list[index];
      assert.deepEqual(segments.placesOf([-1, uid, 1e9]), new Map([[uid, { firstRow, rowCount }]]));
    }
  }
});

Deno.test("Segments finds where segments begin to be at or behind a partition", () => {
  const list = Array.from({ length: 1000 }, (_, k) => ({ ...segmentOf(k, 1), partition: BigInt(Math.floor(k / 3)) }));
  const segments = Segments.of(list);
  for (let k = 0; k <= 334; k++) {
    assert.equal(segments.search(({ partition }) => partition < BigInt(k)), Math.min(3 * k, 1000));
  }
});

Deno.test("a change of Segments shares the pages that it does not touch", () => {
  const before = Segments.of(Array.from({ length: 100_000 }, (_, uid) => segmentOf(uid, 1)));
  const after = before.with(50_000, segmentOf(0, 2)).splice(100_000, 0, [segmentOf(1, 1)]);
  assert.deepEqual(
    after.replacedPages(before).map(({ pages, replaced }) => [replaced.length, pages.length]),
    [[1, 1], [1, 1]],
  );
  assert.deepEqual(after.differenceFrom(before).map(({ count, added }) => [count, added.length]), [[1, 1], [1, 1]]);
});

Deno.test("Segments that are appended one by one fill their pages and lists", () => {
  let segments = Segments.EMPTY;
  for (let uid = 0; uid < 20_000; uid++) segments = segments.splice(uid, 0, [segmentOf(uid, 1)]);
  for (const list of segments.lists.slice(0, -1)) {
    assert.equal(list.pages.length, LIMITS.listMax);
    for (const page of list.pages) assert.equal(page.count, LIMITS.pageMax);
  }
});

Deno.test("pages are read once to find segments by their uids, in whatever order these are", () => {
  const disk = new Disk(), count = 20_000;
  const uidOf = (k: number) => k * 7919 % count;
  const segments = disk.stored(Segments.of(Array.from({ length: count }, (_, k) => segmentOf(uidOf(k), 1))));
  for (const k of [5, 9000, 19_000]) {
    disk.reads = 0;
    assert.deepEqual(segments.placesOf([uidOf(k)]), new Map([[uidOf(k), { firstRow: k, rowCount: 1 }]]));
    const after = segments.mapSegments([uidOf(k)], (segment) => ({ ...segment, rowCount: 2 }));
    assert.equal(after.at(k)!.rowCount, 2);
    assert.equal(after.rowCount, count + 1);
    if (k > 5) assert.ok(disk.reads < 5, `${disk.reads} pages and lists are read`);
  }
});
