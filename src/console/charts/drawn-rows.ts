/** The rows that a chart draws. Those of a large result are read from the server page by page and reduced. */
import { useEffect, useState } from "preact/hooks";
import { eachPage, type WholeOptions } from "../results/whole.ts";
import type { Rows } from "../server/client.ts";
import { DRAWN_MAX, Reducer } from "./reduce.ts";
import { type ChartType, type Shape, xValueOf } from "./shape.ts";

export type XRange = readonly [from: number, to: number];

export interface DrawnRows {
  rows: Rows;
  /** Number of rows that each point represents. */
  rowsOfPoint: number;
  /** True if further rows are not drawn at all. */
  isCut: boolean;
  /** The pages that have been read, to find the rows of a range again. */
  read: readonly ReadPage[];
}

interface ReadPage {
  first: number;
  end: number;
  /** Undefined if no row has an x. */
  range: XRange | undefined;
}

/** @throws {ExpiredError} */
export async function drawnRows(
  rows: Rows,
  shape: Shape,
  type: ChartType,
  options: WholeOptions = {},
): Promise<DrawnRows> {
  // Further bars would be narrower than a pixel.
  const isCut = shape.xKind === "category" && rows.count > DRAWN_MAX;
  const reducer = new Reducer(shape, type), read: ReadPage[] = [];
  await eachPage(rows, (dataset, first) => {
    for (const row of dataset) reducer.add(row);
    read.push({ first, end: first + dataset.length, range: rangeOf(dataset, shape) });
  }, isCut ? { ...options, end: DRAWN_MAX } : options);
  return drawnBy(reducer, rows, isCut, read);
}

/** The rows of a range, with more points than in the whole. @throws {ExpiredError} */
export async function drawnRange(
  { read, isCut }: DrawnRows,
  rows: Rows,
  shape: Shape,
  type: ChartType,
  [from, to]: XRange,
  signal: AbortSignal,
): Promise<DrawnRows> {
  const reducer = new Reducer(shape, type);
  for (const { first, end, range } of read) {
    if (range === undefined || range[0] > to || range[1] < from) continue;
    await eachPage(rows, (dataset) => {
      for (const row of dataset) {
        const x = xValueOf(row, shape);
        if (x !== null && x >= from && x <= to) reducer.add(row);
      }
    }, { signal, first, end });
  }
  return drawnBy(reducer, rows, isCut, read);
}

function drawnBy(reducer: Reducer, rows: Rows, isCut: boolean, read: readonly ReadPage[]): DrawnRows {
  return { rows: { ...rows, dataset: reducer.rows() }, rowsOfPoint: reducer.rowsOfPoint, isCut, read };
}

function rangeOf(dataset: readonly unknown[][], shape: Shape): XRange | undefined {
  let low = Infinity, high = -Infinity;
  for (const row of dataset) {
    const x = xValueOf(row, shape);
    if (x === null) continue;
    if (x < low) low = x;
    if (x > high) high = x;
  }
  return low > high ? undefined : [low, high];
}

/**
 * Undefined while the rows are read. While a statement runs, the chart shows the rows that have arrived with its
 * outcome.
 */
export function useDrawnRows(
  rows: Rows,
  shape: Shape | undefined,
  type: ChartType | undefined,
  onFault: (error: unknown) => void,
): { drawn: DrawnRows | undefined; readCount: number } {
  const [drawn, setDrawn] = useState<DrawnRows>(), [readCount, setReadCount] = useState(0);
  useEffect(() => {
    if (shape === undefined || type === undefined) return;
    const controller = new AbortController(), { signal } = controller;
    const source = rows.spool?.isRunning ? { ...rows, spool: undefined } : rows;
    setReadCount(0);
    drawnRows(source, shape, type, { signal, onProgress: setReadCount }).then(
      (next) => signal.aborted || setDrawn(next),
      (error) => signal.aborted || onFault(error),
    );
    return () => controller.abort();
  }, [rows, shape, type]);
  return { drawn, readCount };
}
