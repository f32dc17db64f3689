/** A table of rows. Only the visible ones are in the document. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { openMenu } from "../app/menu.tsx";
import { copyText } from "../store/clipboard.ts";
import type { Column } from "../server/client.ts";
import { isNumeric, shownText, textOf } from "./cells.ts";
import { nextSorting, type Sorting } from "./sorting.ts";
import { zone } from "./view-settings.ts";

const ROW_PX = 26;
const CHARACTER_PX = 7.9;
const COLUMN_MIN_PX = 72, COLUMN_MAX_PX = 420;
/** Number of rows that determine the column widths. */
const SAMPLE = 200;
/** Additional rows above and below the visible ones. */
const SPARE_ROWS = 10;
/** Longer texts are shown whole in a view of their own. */
const SHOWN_CHARACTERS = 300;

interface GridProps {
  columns: readonly Column[];
  dataset: readonly unknown[][];
  sorting: Sorting | undefined;
  onSort(sorting: Sorting | undefined): void;
  onStatistics(column: Column): void;
  onOpen(column: Column, value: unknown): void;
}

export function Grid({ columns, dataset, sorting, onSort, onStatistics, onOpen }: GridProps) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, left: 0, width: 1200, height: 600 });
  const [cursor, setCursor] = useState({ row: 0, column: 0 });
  const [frozen, setFrozen] = useState<readonly number[]>([]);
  const widths = useMemo(() => columns.map((column, at) => widthOf(column, dataset, at)), [
    columns,
    dataset,
    zone.value,
  ]);
  useLayoutEffect(() => watchView(box.current!, setView), []);

  // Frozen columns stand first. Of the others, those in view are in the document.
  const order = [...frozen, ...columns.keys().filter((at) => !frozen.includes(at))];
  const starts = [0];
  for (const at of order) starts.push(starts.at(-1)! + widths[at]);
  const frozenPx = starts[frozen.length];
  const first = Math.max(frozen.length, starts.findLastIndex((start) => start <= view.left + frozenPx));
  const beyond = starts.findIndex((start) => start > view.left + view.width);
  const shown = order.slice(first, beyond < 0 ? order.length : beyond);
  const firstRow = Math.max(0, Math.floor(view.top / ROW_PX) - SPARE_ROWS);
  const endRow = Math.min(dataset.length, Math.ceil((view.top + view.height) / ROW_PX) + SPARE_ROWS);
  const totalPx = starts.at(-1)!;

  const cells = (make: (at: number, style: Record<string, string>, kind: string) => preact.JSX.Element) => (
    <>
      {frozen.map((at, index) => make(at, { width: `${widths[at]}px`, left: `${starts[index]}px` }, "frozen"))}
      <div style={{ width: `${starts[first] - frozenPx}px`, flex: "none" }} />
      {shown.map((at) => make(at, { width: `${widths[at]}px` }, ""))}
    </>
  );
  const columnMenu = (target: HTMLElement, at: number) =>
    openMenu(target, [
      { name: "Sort ascending", run: () => onSort({ column: at, order: "ascending" }) },
      { name: "Sort descending", run: () => onSort({ column: at, order: "descending" }) },
      {
        name: frozen.includes(at) ? "Unfreeze" : "Freeze",
        run: () => setFrozen(frozen.includes(at) ? frozen.filter((other) => other !== at) : [...frozen, at]),
      },
      { name: "Statistics", run: () => onStatistics(columns[at]) },
      { name: "Copy its name", run: () => copyText(columns[at].name, "The name") },
    ]);
  const move = (row: number, column: number) => {
    const next = { row: clamp(row, dataset.length), column: clamp(column, order.length) };
    setCursor(next);
    scrollTo(
      box.current!,
      next.row,
      starts[next.column],
      starts[next.column + 1],
      frozenPx,
      next.column < frozen.length,
    );
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const { row, column } = cursor, page = Math.max(1, Math.floor(view.height / ROW_PX) - 2);
    const isMod = event.ctrlKey || event.metaKey;
    const at = order[column], value = dataset[row]?.[at];
    const keys: Record<string, () => void> = {
      ArrowDown: () => move(row + 1, column),
      ArrowUp: () => move(row - 1, column),
      ArrowLeft: () => move(row, column - 1),
      ArrowRight: () => move(row, column + 1),
      PageDown: () => move(row + page, column),
      PageUp: () => move(row - page, column),
      Home: () => isMod ? move(0, column) : move(row, 0),
      End: () => isMod ? move(dataset.length - 1, column) : move(row, order.length - 1),
      Enter: () => value !== undefined && onOpen(columns[at], value),
    };
    if (isMod && event.key === "c" && getSelection()?.isCollapsed !== false) copyText(textOf(value), "The value");
    else if (keys[event.key] !== undefined) keys[event.key]();
    else return;
    event.preventDefault();
  };

  return (
    <div
      class="grid"
      ref={box}
      role="grid"
      tabIndex={0}
      aria-label="Rows"
      aria-rowcount={dataset.length + 1}
      aria-colcount={columns.length}
      onKeyDown={onKeyDown}
    >
      <div class="head" role="row" aria-rowindex={1} style={{ width: `${totalPx}px` }}>
        {cells((at, style, kind) => (
          <div
            key={at}
            role="columnheader"
            aria-colindex={at + 1}
            aria-sort={sorting?.column === at ? sorting.order : undefined}
            class={`${classOf(columns[at].type)} ${kind}`}
            style={style}
            title={`${columns[at].name}: click sorts, right click shows more`}
            onClick={() => onSort(nextSorting(sorting, at))}
            onContextMenu={(event) => {
              event.preventDefault();
              columnMenu(event.currentTarget, at);
            }}
          >
            {columns[at].name}
            <small>{columns[at].type}</small>
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
            style={{ top: `${(firstRow + index) * ROW_PX}px`, width: `${totalPx}px` }}
          >
            {cells((at, style, kind) => (
              <div
                key={at}
                role="gridcell"
                aria-colindex={at + 1}
                aria-selected={cursor.row === firstRow + index && order[cursor.column] === at}
                class={`${classOf(columns[at].type)} ${kind} ${row[at] === null ? "null" : ""}`}
                style={style}
                onClick={() => setCursor({ row: firstRow + index, column: order.indexOf(at) })}
                onDblClick={() => onOpen(columns[at], row[at])}
              >
                {shownText(row[at], columns[at].type, zone.value).slice(0, SHOWN_CHARACTERS)}
              </div>
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}

const classOf = (type: string) => isNumeric(type) ? "number" : "";
const clamp = (index: number, count: number) => Math.max(0, Math.min(count - 1, index));

function widthOf({ name, type }: Column, dataset: readonly unknown[][], at: number): number {
  let characters = Math.max(name.length + 1, type.length);
  for (const row of dataset.slice(0, SAMPLE)) {
    characters = Math.max(characters, Math.min(shownText(row[at], type, zone.value).length, 60));
  }
  return Math.min(COLUMN_MAX_PX, Math.max(COLUMN_MIN_PX, Math.ceil(characters * CHARACTER_PX) + 26));
}

interface View {
  top: number;
  left: number;
  width: number;
  height: number;
}

/** Tells what part of the element is in view, now and when that changes. */
function watchView(element: HTMLElement, onView: (view: View) => void): () => void {
  const measure = () => {
    const { scrollTop, scrollLeft, clientWidth, clientHeight } = element;
    onView({ top: scrollTop, left: scrollLeft, width: clientWidth, height: clientHeight });
  };
  const observer = new ResizeObserver(measure);
  observer.observe(element);
  element.addEventListener("scroll", measure, { passive: true });
  return () => {
    observer.disconnect();
    element.removeEventListener("scroll", measure);
  };
}

const HEAD_PX = 42;

/** Brings a cell into view. */
function scrollTo(
  box: HTMLElement,
  row: number,
  left: number,
  right: number,
  frozenPx: number,
  isFrozen: boolean,
): void {
  const top = row * ROW_PX;
  if (top < box.scrollTop) box.scrollTop = top;
  const bottom = top + ROW_PX + HEAD_PX;
  if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
  if (isFrozen) return;
  if (left - frozenPx < box.scrollLeft) box.scrollLeft = left - frozenPx;
  if (right > box.scrollLeft + box.clientWidth) box.scrollLeft = right - box.clientWidth;
}
