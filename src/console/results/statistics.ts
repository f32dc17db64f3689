/** Statistics of a column: number of values and of distinct values, minimum and maximum. */
import { compareValues } from "./sorting.ts";
import { isNumeric, textOf } from "./cells.ts";

/** Further distinct values are not counted, because the page holds each of them. */
const DISTINCT_MAX = 1_000_000;

export class ColumnStatistics {
  private rows = 0;
  private nulls = 0;
  private smallest: unknown;
  private largest: unknown;
  private readonly distinct = new Set<unknown>();
  private hasMore = false;
  /** Mean and sum of squared differences from it. @see Welford, "Note on a method for calculating corrected sums", 1962 */
  private mean = 0;
  private squares = 0;
  private readonly compare: (a: unknown, b: unknown) => number;

  constructor(private readonly type: string) {
    this.compare = compareValues(type);
  }

  add(value: unknown): void {
    this.rows++;
    if (value === null) return void this.nulls++;
    const first = this.count === 1;
    if (first || this.compare(value, this.smallest) < 0) this.smallest = value;
    if (first || this.compare(value, this.largest) > 0) this.largest = value;
    if (!this.hasMore) this.distinct.add(typeof value === "object" ? textOf(value) : value);
    this.hasMore ||= this.distinct.size > DISTINCT_MAX;
    if (!isNumeric(this.type)) return;
    const off = Number(value) - this.mean;
    this.mean += off / this.count;
    this.squares += off * (Number(value) - this.mean);
  }

  /** Names and texts, in the order in which they are shown. */
  lines(): [name: string, text: string][] {
    const { rows, count, distinct, hasMore } = this;
    const lines: [string, string][] = [
      ["rows", whole(rows)],
      ["not null", whole(count)],
      ["distinct", hasMore ? `more than ${whole(DISTINCT_MAX)}` : whole(distinct.size)],
    ];
    if (count === 0) return lines;
    lines.push(["smallest", textOf(this.smallest)], ["largest", textOf(this.largest)]);
    if (!isNumeric(this.type)) return lines;
    lines.push(["average", String(this.mean)]);
    if (count > 1) lines.push(["standard deviation", String(Math.sqrt(this.squares / (count - 1)))]);
    return lines;
  }

  private get count(): number {
    return this.rows - this.nulls;
  }
}

const whole = (count: number) => count.toLocaleString("en");
