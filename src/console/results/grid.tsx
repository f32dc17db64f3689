/** A table of rows. Only the visible ones are in the document. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Column, Rows } from "../server/client.ts";
import { isNumeric, textOf } from "./cells.ts";

const ROW_PX = 26;
const CHARACTER_PX = 7.9;
const COLUMN_MIN_PX = 72, COLUMN_MAX_PX = 420;
/** Number of rows that determine the column widths. */
const SAMPLE = 200;
/** Additional rows above and below the visible ones. */
const SPARE_ROWS = 10;

export function Grid({ rows: { columns, dataset } }: { rows: Rows }) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, left: 0, width: 1200, height: 600 });
  const widths = useMemo(() => columns.map((column, at) => widthOf(column, dataset, at)), [columns, dataset]);
  const starts = useMemo(() => startsOf(widths), [widths]);
  useLayoutEffect(() => {
    const element = box.current!;
    const measure = () =>
      setView({
        top: element.scrollTop,
        left: element.scrollLeft,
        width: element.clientWidth,
        height: element.clientHeight,
      });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);
  const firstRow = Math.max(0, Math.floor(view.top / ROW_PX) - SPARE_ROWS);
  const endRow = Math.min(dataset.length, Math.ceil((view.top + view.height) / ROW_PX) + SPARE_ROWS);
  const firstColumn = Math.max(0, starts.findLastIndex((start) => start <= view.left));
  const beyond = starts.findIndex((start) => start > view.left + view.width);
  const endColumn = beyond < 0 ? columns.length : beyond;
  const shownColumns = columns.slice(firstColumn, endColumn).map((column, at) => ({ column, at: firstColumn + at }));
  const totalPx = starts[columns.length];
  const cellStyle = (at: number) => ({ left: `${starts[at]}px`, width: `${widths[at]}px` });
  return (
    <div
      class="grid"
      ref={box}
      role="grid"
      tabIndex={0}
      aria-label="Rows"
      aria-rowcount={dataset.length + 1}
      aria-colcount={columns.length}
    >
      <div class="head" role="row" aria-rowindex={1} style={{ width: `${totalPx}px` }}>
        {shownColumns.map(({ column: { name, type }, at }) => (
          <div
            key={at}
            role="columnheader"
            aria-colindex={at + 1}
            class={classOf(type)}
            style={cellStyle(at)}
            title={name}
          >
            {name}
            <small>{type}</small>
          </div>
        ))}
      </div>
      <div class="body" style={{ height: `${dataset.length * ROW_PX}px`, width: `${totalPx}px` }}>
        {dataset.slice(firstRow, endRow).map((row, index) => (
          <div
            key={firstRow + index}
            class="row"
            role="row"
            aria-rowindex={firstRow + index + 2}
            style={{ top: `${(firstRow + index) * ROW_PX}px` }}
          >
            {shownColumns.map(({ column: { type }, at }) => (
              <div
                key={at}
                role="gridcell"
                aria-colindex={at + 1}
                class={row[at] === null ? `null ${classOf(type)}` : classOf(type)}
                style={cellStyle(at)}
              >
                {textOf(row[at]).slice(0, 300)}
              </div>
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}

const classOf = (type: string) => isNumeric(type) ? "number" : "";

function widthOf({ name, type }: Column, dataset: readonly unknown[][], at: number): number {
  let characters = Math.max(name.length, type.length);
  for (const row of dataset.slice(0, SAMPLE)) characters = Math.max(characters, Math.min(textOf(row[at]).length, 60));
  return Math.min(COLUMN_MAX_PX, Math.max(COLUMN_MIN_PX, Math.ceil(characters * CHARACTER_PX) + 26));
}

/** The start of each column, and the end of the last one. */
function startsOf(widths: readonly number[]): number[] {
  const starts = [0];
  for (const width of widths) starts.push(starts.at(-1)! + width);
  return starts;
}
