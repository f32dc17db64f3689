import assert from "node:assert/strict";
import { ChangedTimes } from "./changed-times.ts";
import type { SegmentSource, TableSnapshot } from "./contract.ts";

type Segment = [uid: number, rowCount: number, low: number, high: number];

/** A snapshot with pages of these segments. `isOnDisk`: the segments of the page are not in memory. */
function snapshot(lsn: number, pages: { key: string; segments: Segment[]; isOnDisk?: true }[]): TableSnapshot {
  return {
    lsn: BigInt(lsn),
    timedPages: () =>
      pages.map(({ key, segments, isOnDisk }) => ({
        key,
        rowCount: segments.reduce((sum, [, rows]) => sum + rows, 0),
        timestampMin: BigInt(segments[0]![2]),
        timestampMax: BigInt(segments.at(-1)![3]),
        segments: isOnDisk ? undefined : () =>
          segments.map(([uid, rowCount, low, high]): SegmentSource => (
            { uid, rowCount, partition: 0n, timestampMin: BigInt(low), timestampMax: BigInt(high), chunks: [] }
          )),
      })),
  } as Partial<TableSnapshot> as TableSnapshot;
}

const sorted = (intervals: [bigint, bigint][]) => intervals.map(([low, high]) => [Number(low), Number(high)]).sort();

Deno.test("ChangedTimes finds added, changed and removed rows, and none that only moved", () => {
  const changes = new ChangedTimes(snapshot(1, [
    { key: "a", segments: [[1, 10, 0, 9], [2, 10, 10, 19]], isOnDisk: true },
    { key: "b", segments: [[3, 10, 20, 29], [4, 5, 30, 34]] },
  ]));
  const next = (...of: Parameters<typeof snapshot>) => sorted(changes.next(snapshot(...of)));
  const first = { key: "a", segments: [[1, 10, 0, 9], [2, 10, 10, 19]] as Segment[], isOnDisk: true as const };
  assert.deepEqual(next(1, []), [], "another snapshot of the same rows is not looked at");
  assert.deepEqual(next(2, [first, { key: "c", segments: [[3, 10, 20, 29], [4, 8, 30, 37]] }]), [[34, 37]], "appended");
  assert.deepEqual(
    next(3, [first, { key: "d", segments: [[3, 10, 20, 29]] }, { key: "e", segments: [[4, 8, 30, 37]] }]),
    [],
    "segments in other pages",
  );
  assert.deepEqual(
    next(4, [first, { key: "f", segments: [[5, 12, 20, 29]] }, { key: "e", segments: [[4, 8, 30, 37]] }]),
    [[20, 29], [20, 29]],
    "a late row, or changed values",
  );
  assert.deepEqual(next(5, [{ key: "e", segments: [[4, 8, 30, 37]] }]), [[0, 19], [20, 29]], "removed");
  assert.deepEqual(next(6, [{ key: "g", segments: [[9, 3, 50, 60]], isOnDisk: true }]), [[30, 37], [50, 60]]);
});
