/**
 * Reduces many rows to as many as a chart can show. Consecutive rows form a group, of which only the rows needed for
 * the chart type are kept. Rows are added one by one, in any number; groups are merged in pairs when there are too
 * many.
 */
import { textOf } from "../results/cells.ts";
import { type ChartType, SERIES_MAX, type Shape } from "./shape.ts";

/** Fewer rows are drawn unchanged. */
export const DRAWN_MAX = 50_000;
/** Approximate number of rows to keep. */
const KEPT = 20_000;
const GROUPS_MIN = 200;

interface Placed {
  row: readonly unknown[];
  at: number;
}

/** The extremes of one column of values in one series. */
interface Extremes {
  column: number;
  low: Placed;
  high: Placed;
}

interface Group {
  first: Placed;
  last: Placed;
  rowCount: number;
  byKey: Map<string, Extremes>;
}

export class Reducer {
  private groups: Group[] = [];
  /** Number of rows in a full group. */
  private groupRows = 1;
  private rowCount = 0;
  private readonly series = new Set<string>();
  /** All rows, as long as they are few. */
  private plain: unknown[][] | undefined = [];

  constructor(private readonly shape: Shape, private readonly type: ChartType) {}

  add(row: unknown[]): void {
    const at = this.rowCount++;
    this.plain?.push(row);
    if (this.plain !== undefined && this.plain.length > DRAWN_MAX) this.plain = undefined;
    let group = this.groups.at(-1);
    if (group === undefined || group.rowCount === this.groupRows) {
      if (this.groups.length >= 2 * this.groupsMax()) this.mergePairs();
      this.groups.push(group = { first: { row, at }, last: { row, at }, rowCount: 0, byKey: new Map() });
    }
    group.rowCount++;
    group.last = { row, at };
    const by = this.seriesOf(row);
    for (const column of this.shape.y) this.extend(group, `${column} ${by}`, column, { row, at }, { row, at });
  }

  /** Number of rows that a point represents; 1 if nothing was reduced. */
  get rowsOfPoint(): number {
    return this.plain === undefined ? this.groupRows : 1;
  }

  rows(): unknown[][] {
    if (this.plain !== undefined) return this.plain;
    if (this.type === "candlestick") return this.groups.map((group) => this.candle(group));
    if (this.type === "heat map") return this.groups.flatMap((group) => this.cells(group));
    const kept = new Map<number, unknown[]>();
    for (const { byKey } of this.groups) {
      for (const { low, high } of byKey.values()) {
        kept.set(low.at, low.row as unknown[]).set(high.at, high.row as unknown[]);
      }
    }
    return [...kept].sort(([a], [b]) => a - b).map(([, row]) => row);
  }

  private groupsMax(): number {
    const rowsOfGroup = 2 * this.shape.y.length * Math.max(1, this.series.size);
    return Math.max(GROUPS_MIN, Math.ceil(KEPT / rowsOfGroup));
  }

  private seriesOf(row: readonly unknown[]): string {
    const { seriesBy } = this.shape;
    if (seriesBy === undefined || this.type === "candlestick") return "";
    const name = textOf(row[seriesBy]);
    if (this.series.size < SERIES_MAX) this.series.add(name);
    return this.series.has(name) ? name : "";
  }

  private extend(group: Group, key: string, column: number, low: Placed, high: Placed): void {
    const known = group.byKey.get(key);
    if (known === undefined) {
      // Number(null) is 0, but null is not a value here.
      if (low.row[column] !== null) group.byKey.set(key, { column, low, high });
      return;
    }
    if (low.row[column] === null) return;
    if (Number(low.row[column]) < Number(known.low.row[column])) known.low = low;
    if (Number(high.row[column]) > Number(known.high.row[column])) known.high = high;
  }

  private mergePairs(): void {
    const merged: Group[] = [];
    for (let at = 0; at < this.groups.length; at += 2) {
      const left = this.groups[at]!, right = this.groups[at + 1];
      if (right !== undefined) {
        for (const [key, { column, low, high }] of right.byKey) this.extend(left, key, column, low, high);
        left.last = right.last;
        left.rowCount += right.rowCount;
      }
      merged.push(left);
    }
    this.groups = merged;
    this.groupRows *= 2;
  }

  /** Merges the candles of a group into one. */
  private candle({ first, last, byKey }: Group): unknown[] {
    const [, high, low, close] = this.shape.ohlc!, row = [...first.row];
    row[high] = byKey.get(`${high} `)?.high.row[high] ?? null;
    row[low] = byKey.get(`${low} `)?.low.row[low] ?? null;
    row[close] = last.row[close];
    return row;
  }

  /** One row for each series, with its largest values, at the time of the group's first row. */
  private cells({ first, byKey }: Group): unknown[][] {
    const { x } = this.shape, bySeries = new Map<string, unknown[]>();
    for (const [key, { column, high }] of byKey) {
      const series = key.slice(key.indexOf(" "));
      let row = bySeries.get(series);
      if (row === undefined) {
        bySeries.set(series, row = [...high.row]);
        row[x] = first.row[x];
      }
      row[column] = high.row[column];
    }
    return [...bySeries.values()];
  }
}
