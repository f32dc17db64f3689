/** The times of a materialized view's buckets, and how they are divided into the transactions of a refresh. */
import { TimeBuckets } from "../engine/mod.ts";
import { normalizeIntervals } from "../sql/mod.ts";
import type { Interval, Materialized } from "../sql/plan.ts";
import type { TableSnapshot, TimedPage } from "../storage/mod.ts";
import { multiplesOf } from "./periods.ts";

/** Base rows that one transaction reads, if its buckets are small enough. */
const ROWS_AT_ONCE = 10_000_000;

export class BucketTimes {
  /** Type of the base's designated timestamp. */
  readonly type: string;
  private readonly samplings: TimeBuckets[];
  /** Start of the first partition. */
  private readonly first: bigint;
  /** Times before are not refreshed. */
  private readonly oldest: bigint;
  private foundPages?: readonly TimedPage[];

  constructor({ samplings, limit }: Materialized, private readonly base: TableSnapshot) {
    this.type = timeOf(base).type;
    this.first = base.partitionMin!;
    this.samplings = samplings.map(({ count, unit, timeZone, offset }) =>
      new TimeBuckets({ count, unit, align: "calendar", timeZone, offset: BigInt(offset) }, this.type, 0n)
    );
    const from = base.timestampMax!,
      ofLimit = limit && multiplesOf(limit, { from, type: this.type });
    this.oldest = max(this.first, ofLimit?.of(from - 1n).start ?? this.first);
  }

  /**
   * The buckets of all rows of the base, and after them. `view`: if it has older buckets, the base has dropped its oldest partitions, perhaps in the
   * middle of a bucket, which stays as it is then.
   */
  all(view: TableSnapshot | undefined): Interval {
    const { timestampMin, timestampMax } = this.base, last = view?.rowCount ? view.timestampMax! : timestampMax!;
    let [low] = this.bucketsOf(max(timestampMin!, this.oldest), timestampMax!);
    if (view?.rowCount && low < this.first && view.timestampMin! < low) low = this.endOf(timestampMin!);
    return [low, this.endOf(max(last, timestampMax!))];
  }

  /** From the first instant of the buckets of some times to the first one after them, merged and in order. Partitions that the base has no more are left out. */
  buckets(intervals: readonly Interval[]): Interval[] {
    const found = intervals.filter(([, high]) => high >= this.oldest).map(([low, high]) =>
      this.bucketsOf(max(low, this.oldest), high)
    );
    const ends = found.map(([low, end]): Interval => [low, end - 1n]);
    return normalizeIntervals(ends).map(([low, high]): Interval => [low, high + 1n]);
  }

  /** Of a base that is larger than a piece. */
  private get pages(): readonly TimedPage[] {
    return this.foundPages ??= this.base.rowCount < ROWS_AT_ONCE ? [] : this.base.timedPages();
  }

  /** Divides an interval between buckets, so that parts have some ten million rows of the base. */
  *pieces([low, high]: Interval): Generator<Interval> {
    let from = low, rows = 0;
    for (const { rowCount, timestampMax } of this.pages) {
      if (timestampMax < from) continue;
      rows += rowCount;
      if (rows < ROWS_AT_ONCE || timestampMax >= high) continue;
      const to = this.endOf(timestampMax);
      if (to >= high) break;
      yield [from, to];
      from = to;
      rows = 0;
    }
    if (from < high) yield [from, high];
  }

  /** Between two buckets near the middle. Undefined if there is one. */
  middle(low: bigint, high: bigint): bigint | undefined {
    const found = this.endOf(low + (high - low) / 2n);
    if (found < high) return found;
    const first = this.endOf(low);
    return first < high ? first : undefined;
  }

  /** A bucket of one sampling may be in the middle of one of another, which may be over or below it. */
  private bucketsOf(from: bigint, to: bigint): Interval {
    const { samplings } = this;
    let low = from;
    for (let pass = 0; pass < samplings.length; pass++) {
      for (const buckets of samplings) low = min(low, buckets.of(low).start);
    }
    return [low, this.endOf(to)];
  }

  /** The end of the last one of the buckets of a time. */
  endOf(time: bigint): bigint {
    return this.samplings.reduce((end, buckets) => max(end, buckets.of(time).end), time);
  }
}

/** The designated timestamp. */
export function timeOf(
  { schema: { columns, timestampId } }: TableSnapshot,
): TableSnapshot["schema"]["columns"][number] {
  return columns.find(({ id }) => id === timestampId)!;
}

export const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);
export const max = (a: bigint, b: bigint): bigint => (a > b ? a : b);
