/** Partitions as parts of the tree of segments, and their versions. */
import assert from "node:assert/strict";
import { LIMITS } from "./packing.ts";
import { Page } from "./page.ts";
import { PageList } from "./page-list.ts";
import { type Segment, Segments } from "./segments.ts";
import { Disk } from "./test-disk.ts";
import { FULL, SEED } from "../testing.ts";

const SEEDS = FULL ? 12 : 4;

function randomOf(seed: number): (max: number) => number {
  let state = seed * 2654435761 >>> 0 || 1;
  return (max) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return Math.floor((state >>> 0) / 2 ** 32 * max);
  };
}

let uid = 0;
const segmentOf = (partition: number, rowCount: number): Segment => (
  { uid: ++uid, partition: BigInt(partition), rowCount, timestampMin: 0n, timestampMax: 0n, chunks: [] }
);

const rowsOf = (segments: Iterable<Segment>) =>
  Array.from(segments, ({ uid, partition, rowCount }) => [Number(partition), uid, rowCount]);

/** Fails if a page or a list has a part of a partition and segments of another one. */
function assertAligned(segments: Segments): void {
  const check = (items: readonly (Page | PageList)[]) => {
    for (let k = 1; k < items.length; k++) {
      if (items[k - 1].last.partition !== items[k].first.partition) continue;
      assert.ok(items[k - 1].isOfOne && items[k].isOfOne, "a partition with several parts does not share them");
    }
  };
  check(segments.lists);
  check(segments.lists.flatMap(({ pages }) => pages));
}

/** A table as a list of segments. */
class Model {
  list: Segment[] = [];
  segments = Segments.EMPTY;
  private readonly disk = new Disk();
  private detached: { list: Segment[]; segments: Segments } | undefined;
  /** By partition and version: the rows. */
  private readonly seen = new Map<string, string>();
  private before = new Map<bigint, { version: number; rows: string }>();

  /** Some segments are on disk. `isOld`: as earlier versions have written them, whose pages have parts of several partitions. */
  constructor(private readonly random: (max: number) => number, private readonly isOld: boolean) {
    this.list = Array.from({ length: random(200) }, () => segmentOf(random(20), 1 + random(9)))
      .sort((a, b) => Number(a.partition - b.partition));
    const parts = <T>(items: readonly T[]) =>
      Array.from({ length: Math.ceil(items.length / 3) }, (_, k) => items.slice(3 * k, 3 * k + 3));
    const segments = isOld
      ? Segments.ofLists(parts(parts(this.list).map((part) => Page.of(part))).map((part) => PageList.of(part)))
      : Segments.of(this.list);
    this.segments = this.disk.stored(segments);
  }

  change(): void {
    const { random, list } = this;
    switch (random(12)) {
      case 0:
      case 1: { // at the end
        const last = Number(list.at(-1)?.partition ?? 0n) + random(3);
        const added = Array.from({ length: 1 + random(12) }, (_, k) => segmentOf(last + k * random(2), 1 + random(9)))
          .sort((a, b) => Number(a.partition - b.partition));
        return this.splice(list.length, 0, added);
      }
      case 2:
      case 3: { // in the middle, of one partition
        const partition = random(30), count = 1 + random(random(4) === 0 ? 40 : 3);
        const end = list.filter((s) => Number(s.partition) <= partition).length;
        const own = list.filter((s) => Number(s.partition) === partition).length;
        return this.splice(
          end - random(own + 1),
          0,
          Array.from({ length: count }, () => segmentOf(partition, 1 + random(9))),
        );
      }
      case 4: { // a segment is replaced by some
        if (list.length === 0) return;
        const at = random(list.length), partition = Number(list[at].partition);
        return this.splice(at, 1, Array.from({ length: random(4) }, () => segmentOf(partition, 1 + random(9))));
      }
      case 5: { // rows are appended to a segment, or it is stored in another place
        if (list.length === 0) return;
        const at = random(list.length);
        return this.splice(at, 1, [{ ...list[at], rowCount: list[at].rowCount + random(2), words: undefined }]);
      }
      case 6: { // segments go
        const at = random(list.length + 1);
        return this.splice(at, random(Math.min(list.length - at, random(3) === 0 ? 60 : 4) + 1), []);
      }
      case 7: {
        const kept = (segment: Segment) =>
          random(8) > 0 ? segment : random(2) > 0 ? undefined : { ...segment, uid: ++uid, words: undefined };
        // Segments that are read again are other objects.
        const after = new Map(list.map((segment) => [segment.uid, kept(segment)]));
        this.segments = this.segments.map((segment) => {
          const decided = after.get(segment.uid);
          return decided?.uid === segment.uid ? segment : decided;
        });
        this.list = list.flatMap(({ uid }) => after.get(uid) ?? []);
        return;
      }
      case 8:
        return this.move();
      case 9: // some pages are stored
        this.segments = this.segments.mapPages((page) => [random(2) > 0 ? this.disk.sealed(page) : page]);
        return;
      case 10: // the table is closed and opened again
        if (this.detached !== undefined) this.detached.segments = this.disk.stored(this.detached.segments);
        this.segments = this.disk.stored(this.segments);
        return;
      default: { // more segments at the end, as they are
        const last = Number(list.at(-1)?.partition ?? 0n) + random(2);
        const added = Array.from({ length: 1 + random(40) }, () => segmentOf(last + random(4), 1 + random(9)))
          .sort((a, b) => Number(a.partition - b.partition));
        this.segments = this.segments.concat(Segments.of(added));
        this.list = [...list, ...added];
      }
    }
  }

  private splice(start: number, count: number, added: Segment[]): void {
    this.segments = this.segments.splice(start, count, added);
    this.list = this.list.toSpliced(start, count, ...added);
  }

  /** Detaches a partition or attaches it again. */
  private move(): void {
    const { list, detached, random } = this;
    if (detached === undefined) {
      if (list.length === 0) return;
      const { partition } = list[random(list.length)], found = this.segments.partition(partition)!;
      this.detached = { list: list.slice(found.first, found.end), segments: this.segments.segmentsOf(found) };
      assert.deepEqual(rowsOf(this.detached.segments), rowsOf(this.detached.list));
      this.splice(found.first, found.end - found.first, []);
    } else {
      const { partition } = detached.list[0], start = list.filter((s) => s.partition < partition).length;
      if (list[start]?.partition === partition) return;
      this.segments = this.segments.withPartition(detached.segments);
      this.list = list.toSpliced(start, 0, ...detached.list);
      this.detached = undefined;
    }
  }

  check(): void {
    const { list, segments } = this;
    assert.deepEqual(rowsOf(segments), rowsOf(list));
    if (!this.isOld) assertAligned(segments);
    const found = [...segments.partitions()], now = new Map<bigint, { version: number; rows: string }>();
    let first = 0, firstRow = 0;
    for (const [partition, own] of Map.groupBy(list, ({ partition }) => partition)) {
      const rowCount = own.reduce((sum, { rowCount }) => sum + rowCount, 0), rows = JSON.stringify(rowsOf(own));
      const expected = found[now.size], { version } = expected, end = first + own.length;
      const { timestampMin } = own[0], { timestampMax } = own[own.length - 1];
      assert.deepEqual(
        { partition, version, format: 0, first, end, firstRow, rowCount, timestampMin, timestampMax },
        expected,
      );
      assert.deepEqual(segments.partition(partition), expected);
      first += own.length;
      firstRow += rowCount;
      now.set(partition, { version, rows });
      const key = `${partition} ${version}`;
      assert.equal(rows, this.seen.get(key) ?? rows, "a version has the same rows at any time");
      this.seen.set(key, rows);
      const before = this.before.get(partition);
      if (before?.rows === rows) assert.equal(version, before.version, "the same rows are the same version");
    }
    assert.equal(found.length, now.size);
    this.before = now;
  }
}

Deno.test("partitions do not share pages and lists that have a part of them, and have another version after each change of their rows", () => {
  const limits = { ...LIMITS };
  try {
    for (let seed = SEED; seed < SEED + SEEDS; seed++) {
      Object.assign(
        LIMITS,
        seed % 2 === 0
          ? { pageMin: 2, pageMax: 4, listMax: 3, listMin: 2 }
          : { pageMin: 2, pageMax: 9, listMax: 4, listMin: 2 },
      );
      const model = new Model(randomOf(seed), seed % 3 === 0);
      for (let step = 0; step < 300; step++) {
        try {
          model.change();
          model.check();
        } catch (error) {
          throw new Error(`SEED=${seed}, step ${step}`, { cause: error });
        }
      }
    }
  } finally {
    Object.assign(LIMITS, limits);
  }
});

Deno.test("a partition of many segments is detached and attached with its pages as they are", () => {
  const list = Array.from({ length: 50_000 }, (_, k) => segmentOf(k < 100 ? k : k < 49_900 ? 100 : k, 1));
  const before = Segments.of(list), found = before.partition(100n)!;
  const own = before.segmentsOf(found), pages = new Set(before.pages());
  assert.ok([...own.pages()].every((page) => pages.has(page)));
  const without = before.splice(found.first, found.end - found.first, []);
  assert.deepEqual(rowsOf(without), rowsOf([...list.slice(0, 100), ...list.slice(49_900)]));
  const after = without.withPartition(own);
  assert.deepEqual(rowsOf(after), rowsOf(list));
  const shared = [...after.pages()].filter((page) => pages.has(page)).length;
  assert.ok(shared >= pages.size - 2, `${shared} of ${pages.size} pages stay`);
  assert.equal(after.partition(100n)!.version, found.version);
});

Deno.test("lists of pages that go as a whole are not read", () => {
  const list = Array.from({ length: 50_000 }, (_, k) => segmentOf(k < 100 ? k : k < 49_900 ? 100 : k, 1));
  const segments = new Disk().stored(Segments.of(list)), { first, end } = segments.partition(100n)!;
  const after = segments.splice(first, end - first, []);
  assert.deepEqual(rowsOf(after), rowsOf([...list.slice(0, 100), ...list.slice(49_900)]));
  assert.ok(segments.lists.filter(({ isRead }) => isRead).length <= 4);
});

Deno.test("small partitions that are appended fill their pages and lists", () => {
  let segments = Segments.EMPTY;
  for (let k = 0; k < 30_000; k++) segments = segments.splice(k, 0, [segmentOf(Math.floor(k / 3), 1)]);
  for (const list of segments.lists.slice(0, -1)) {
    assert.equal(list.pages.length, LIMITS.listMax);
    for (const page of list.pages) assert.ok(page.count > LIMITS.pageMax - 3);
  }
});
