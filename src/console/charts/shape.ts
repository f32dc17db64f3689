/** The ways to draw a result: which column is x, which columns form series, which contain their values. */
import { isNumeric, isTime, textOf } from "../results/cells.ts";
import type { Rows } from "../server/client.ts";

export type ChartType = "line" | "area" | "bar" | "scatter" | "candlestick" | "heat map";

export interface Shape {
  /** Index of the column along x. */
  x: number;
  xKind: "time" | "number" | "category";
  /** Index of the column whose values name the series. */
  seriesBy?: number;
  /** Indices of the columns with values. */
  y: number[];
  /** Indices of open, high, low and close. */
  ohlc?: [number, number, number, number];
  /** The type that is drawn unless the user selects another. */
  best: ChartType;
}

/** Further series would have no distinct colours. */
export const SERIES_MAX = 24;

type Table = Pick<Rows, "columns" | "dataset">;

/** Undefined if nothing can be drawn: no rows, or no column of numbers. */
export function shapeOf({ columns, dataset }: Table): Shape | undefined {
  if (dataset.length === 0) return undefined;
  const numeric = indices(columns, ({ type }) => isNumeric(type));
  const times = indices(columns, ({ type }) => isTime(type));
  const texts = indices(columns, ({ type }) => !isNumeric(type) && !isTime(type));
  const ohlc = ohlcOf(columns, numeric);
  const [time] = times, [text] = texts, [number, ...numbers] = numeric;
  if (number === undefined) return undefined;
  if (time !== undefined) {
    const seriesBy = texts.find((at) => distinct(dataset, at) <= SERIES_MAX);
    return {
      x: time,
      xKind: "time",
      seriesBy,
      y: numeric,
      ohlc,
      best: ohlc === undefined ? "line" : "candlestick",
    };
  }
  if (text !== undefined) return { x: text, xKind: "category", y: numeric, best: "bar" };
  return numbers.length === 0 ? undefined : { x: number, xKind: "number", y: numbers, best: "scatter" };
}

/** The suitable types, best first. */
export function typesFor({ xKind, seriesBy, y, ohlc, best }: Shape): ChartType[] {
  const fitting: ChartType[] = xKind === "category" ? ["bar"] : ["line", "area", "bar", "scatter"];
  if (ohlc !== undefined) fitting.push("candlestick");
  if (seriesBy !== undefined || y.length > 1) fitting.push("heat map");
  return [best, ...fitting.filter((type) => type !== best)];
}

/** The chosen type if it suits the shape, and otherwise the best one. */
export const typeFor = (shape: Shape, chosen: ChartType | undefined): ChartType =>
  typesFor(shape).find((type) => type === chosen) ?? shape.best;

export interface Series {
  name: string;
  /** A value for each x. Null if there is none. */
  values: (number | null)[];
}

export interface ChartData {
  /** Milliseconds since 1970, numbers, or indices of `categories`; ascending. */
  x: number[];
  categories?: string[];
  series: Series[];
}

/** The values of a shape. For candlesticks there are four series: open, high, low and close. */
export function dataOf({ dataset, columns }: Table, shape: Shape, type: ChartType): ChartData {
  const { x, xKind, seriesBy } = shape;
  const y = type === "candlestick" ? shape.ohlc! : shape.y;
  const categories = xKind === "category" ? [...new Set(dataset.map((row) => textOf(row[x])))] : undefined;
  const indexOf = new Map(categories?.map((name, at) => [name, at]));
  const xOf = (row: unknown[]) => xKind === "category" ? indexOf.get(textOf(row[x]))! : xValueOf(row, shape);
  const rows = dataset.map((row) => ({ row, at: xOf(row) })).filter(({ at }) => at !== null) as {
    row: unknown[];
    at: number;
  }[];
  const all = [...new Set(rows.map(({ at }) => at))].sort((a, b) => a - b);
  const place = new Map(all.map((at, index) => [at, index]));
  const series = new Map<string, Series>();
  for (const { row, at } of rows) {
    for (const column of y) {
      const by = type === "candlestick" || seriesBy === undefined ? undefined : textOf(row[seriesBy]);
      const value = columns[column]!.name;
      const name = by === undefined ? value : y.length === 1 ? by : `${by} ${value}`;
      let one = series.get(name);
      if (one === undefined) series.set(name, one = { name, values: new Array(all.length).fill(null) });
      one.values[place.get(at)!] = numberOf(row[column]);
    }
  }
  return { x: all, categories, series: [...series.values()].slice(0, SERIES_MAX) };
}

/** Position of a row on an axis of times or numbers. */
export function xValueOf(row: readonly unknown[], { x, xKind }: Shape): number | null {
  return xKind === "time" ? timeOf(row[x]) : numberOf(row[x]);
}

function timeOf(value: unknown): number | null {
  const at = typeof value === "string" ? Date.parse(value.replace(/(\.\d{3})\d*Z$/, "$1Z")) : NaN;
  return Number.isNaN(at) ? null : at;
}

function numberOf(value: unknown): number | null {
  const number = value === null ? NaN : Number(value);
  return Number.isFinite(number) ? number : null;
}

function ohlcOf(columns: Table["columns"], numeric: readonly number[]): Shape["ohlc"] {
  const names = new Map(numeric.toReversed().map((at) => [columns[at]!.name.toLowerCase(), at]));
  const found = (word: string) => names.get(word) ?? names.get(word.charAt(0));
  const open = found("open"), high = found("high"), low = found("low"), close = found("close");
  if (open === undefined || high === undefined || low === undefined || close === undefined) return undefined;
  return [open, high, low, close];
}

function indices<T>(items: readonly T[], test: (item: T) => boolean): number[] {
  return items.flatMap((item, at) => test(item) ? [at] : []);
}

function distinct(dataset: readonly unknown[][], column: number): number {
  return new Set(dataset.map((row) => row[column])).size;
}
