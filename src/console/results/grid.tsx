/** A table of rows. Only the visible ones are in the document. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { openMenu } from "../app/menu.tsx";
import { copyText } from "../store/clipboard.ts";
import type { Column } from "../server/client.ts";
import { isNumeric, shownText, textOf } from "./cells.ts";
import { scaleOf } from "./scrolling.ts";
import { nextSorting, type Sorting } from "./sorting.ts";
import { zone } from "./view-settings.ts";

const ROW_PX = 26;
const HEAD_PX = 42;
const CHARACTER_PX = 7.9;
const COLUMN_MIN_PX = 72, COLUMN_MAX_PX = 420;
/** Number of rows that determine the column widths. */
const SAMPLE = 200;
/** Additional rows above and below the visible ones. */
const SPARE_ROWS = 10;
/** Longer texts are shown completely in a separate view. */
const SHOWN_CHARACTERS = 300;

/** The contents of the grid. Rows that are missing are requested. */
export interface GridRows {
  count: number;
  /** The first rows, which determine the column widths. */
  sample: readonly (readonly unknown[])[];
  row(index: number): readonly unknown[] | undefined;
  want?(first: number, end: number): void;
}

interface GridProps {
  columns: readonly Column[];
  rows: GridRows;
  /** Shown if there are none. */
  emptyText?: string;
  sorting: Sorting | undefined;
  onSort(sorting: Sorting | undefined): void;
  /** Absent if it is not offered. */
  onStatistics?(column: Column): void;
  onOpen(column: Column, value: unknown): void;
}

export function Grid({ columns, rows, emptyText, sorting, onSort, onStatistics, onOpen }: GridProps) {
  const { count, sample } = rows;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, left: 0, width: 1200, height: 600 });
  const [cursor, setCursor] = useState({ row: 0, column: 0 });
  const [frozen, setFrozen] = useState<readonly number[]>([]);
  const widths = useWidths(columns, sample);
  useLayoutEffect(() => watchView(box.current!, setView), []);
  const viewPx = Math.max(ROW_PX, view.height - HEAD_PX);
  const scale = useMemo(() => scaleOf(count, ROW_PX, viewPx), [count, viewPx]);
  // The exact position that was last set, because the scroll bar of many rows is too coarse for it.
  const exact = useRef({ scrollTop: 0, rowsTop: 0 });
  const rowsTop = Math.abs(exact.current.scrollTop - view.top) < 1 ? exact.current.rowsTop : scale.toRows(view.top);
  const scrollRowsTo = (top: number) => {
    const element = box.current!, target = scale.toRows(scale.toScroll(Math.max(0, top)));
    element.scrollTop = scale.toScroll(target);
    exact.current = { scrollTop: element.scrollTop, rowsTop: target };
    setView((before) => ({ ...before, top: element.scrollTop }));
  };
  // In another order, other rows are first.
  const isFirstOrder = useRef(true);
  useEffect(() => {
    if (!isFirstOrder.current) scrollRowsTo(0);
    isFirstOrder.current = false;
  }, [sorting]);
  const isScaled = scale.heightPx < count * ROW_PX;
  useEffect(() => isScaled ? onWheel(box.current!, (by) => scrollRowsTo(rowsTop + by)) : undefined);

  const firstRow = Math.max(0, Math.floor(rowsTop / ROW_PX) - SPARE_ROWS);
  const endRow = Math.min(count, Math.ceil((rowsTop + viewPx) / ROW_PX) + SPARE_ROWS);
  widths.measure(rows, firstRow, endRow);

  // Of the columns that are not frozen, only visible ones are in the document.
  const order = placedColumns(columns, widths.px, frozen), frozenCount = frozen.filter((at) => at in columns).length;
  const frozenPx = order[frozenCount - 1]?.right ?? 0, totalPx = order.at(-1)?.right ?? 0;
  const first = Math.max(frozenCount, order.findLastIndex(({ left }) => left <= view.left + frozenPx));
  const beyond = order.findIndex(({ left }) => left > view.left + view.width);
  const shown = order.slice(first, beyond < 0 ? order.length : beyond);
  useEffect(() => rows.want?.(firstRow, endRow), [rows, firstRow, endRow]);

  // Columns that grow must not move the first visible column or the cursor.
  const lastOrder = useRef(order);
  useLayoutEffect(() => {
    const before = lastOrder.current, element = box.current!;
    lastOrder.current = order;
    if (before.length !== order.length || before.at(-1)?.right === totalPx || view.left === 0) return;
    const was = before[cursor.column], is = order[cursor.column];
    const wasInView = was !== undefined && was.left >= view.left + frozenPx && was.right <= view.left + view.width;
    element.scrollLeft += (order[first]?.left ?? 0) - (before[first]?.left ?? 0);
    if (wasInView && is !== undefined && cursor.column >= frozenCount) scrollAcross(element, is, frozenPx);
  }, [totalPx]);

  const cells = (make: (column: PlacedColumn, style: Record<string, string>, kind: string) => preact.JSX.Element) => {
    const width = ({ left, right }: PlacedColumn) => `${right - left}px`;
    return (
      <>
        {order.slice(0, frozenCount).map((one) => make(one, { width: width(one), left: `${one.left}px` }, "frozen"))}
        <div style={{ width: `${(order[first]?.left ?? totalPx) - frozenPx}px`, flex: "none" }} />
        {shown.map((one) => make(one, { width: width(one) }, ""))}
      </>
    );
  };
  const columnMenu = (target: HTMLElement, { at, column }: PlacedColumn) =>
    openMenu(target, [
      { name: "Sort ascending", run: () => onSort({ column: at, order: "ascending" }) },
      { name: "Sort descending", run: () => onSort({ column: at, order: "descending" }) },
      {
        name: frozen.includes(at) ? "Unfreeze" : "Freeze",
        run: () => setFrozen(frozen.includes(at) ? frozen.filter((other) => other !== at) : [...frozen, at]),
      },
      ...onStatistics === undefined ? [] : [{ name: "Statistics", run: () => onStatistics(column) }],
      { name: "Copy its name", run: () => copyText(column.name, "The name") },
    ]);
  const move = (row: number, column: number) => {
    const next = { row: clamp(row, count), column: clamp(column, order.length) }, target = order[next.column];
    setCursor(next);
    const top = next.row * ROW_PX, bottom = top + ROW_PX;
    if (top < rowsTop) scrollRowsTo(top);
    else if (bottom > rowsTop + viewPx) scrollRowsTo(bottom - viewPx);
    if (target !== undefined && next.column >= frozenCount) scrollAcross(box.current!, target, frozenPx);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const { row, column } = cursor, page = Math.max(1, Math.floor(view.height / ROW_PX) - 2);
    const isMod = event.ctrlKey || event.metaKey;
    const current = order[column], value = current && rows.row(row)?.[current.at];
    const keys: Record<string, () => void> = {
      ArrowDown: () => move(row + 1, column),
      ArrowUp: () => move(row - 1, column),
      ArrowLeft: () => move(row, column - 1),
      ArrowRight: () => move(row, column + 1),
      PageDown: () => move(row + page, column),
      PageUp: () => move(row - page, column),
      Home: () => move(isMod ? 0 : row, 0),
      End: () => move(isMod ? count - 1 : row, order.length - 1),
      Enter: () => current !== undefined && value !== undefined && onOpen(current.column, value),
    };
    const run = keys[event.key];
    if (isMod && event.key.toLowerCase() === "c" && getSelection()?.isCollapsed !== false) {
      copyText(textOf(value), "The value");
    } else if (run !== undefined) run();
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
      aria-rowcount={count + 1}
      aria-colcount={columns.length}
      onKeyDown={onKeyDown}
      onContextMenu={(event) => {
        // For keys: the column of the cursor.
        if (event.target !== box.current) return;
        event.preventDefault();
        const current = order[cursor.column];
        if (current === undefined) return;
        const head = event.currentTarget.querySelector<HTMLElement>(`.head [aria-colindex="${current.at + 1}"]`);
        if (head !== null) columnMenu(head, current);
      }}
    >
      <div class="head" role="row" aria-rowindex={1} style={{ width: `${totalPx}px` }}>
        {cells((placed, style, kind) => (
          <div
            key={placed.at}
            role="columnheader"
            aria-colindex={placed.at + 1}
            aria-sort={sorting?.column === placed.at ? sorting.order : undefined}
            class={`${classOf(placed.column.type)} ${kind}`}
            style={style}
            title={`${placed.column.name}: click sorts, right click or the menu key shows more`}
            onClick={() => onSort(nextSorting(sorting, placed.at))}
            onContextMenu={(event) => {
              event.preventDefault();
              columnMenu(event.currentTarget, placed);
            }}
          >
            {placed.column.name}
            <small>{placed.column.type}</small>
          </div>
        ))}
      </div>
      <div class="body" style={{ height: `${scale.heightPx}px`, width: `${totalPx}px` }}>
        {Array.from({ length: Math.max(0, endRow - firstRow) }, (_, k) => firstRow + k).map((index) => {
          const row = rows.row(index);
          return (
            <div
              key={index}
              class={row === undefined ? "row loading" : "row"}
              role="row"
              aria-rowindex={index + 2}
              style={{ top: `${view.top + index * ROW_PX - rowsTop}px`, width: `${totalPx}px` }}
            >
              {cells((placed, style, kind) => {
                const { at, column } = placed;
                return (
                  <div
                    key={at}
                    role="gridcell"
                    aria-colindex={at + 1}
                    aria-selected={cursor.row === index && order[cursor.column] === placed}
                    class={`${classOf(column.type)} ${kind} ${row?.[at] === null ? "null" : ""}`}
                    style={style}
                    onClick={() => setCursor({ row: index, column: order.indexOf(placed) })}
                    onDblClick={() => row !== undefined && onOpen(column, row[at])}
                  >
                    {row === undefined ? "…" : shownText(row[at], column.type, zone.value).slice(0, SHOWN_CHARACTERS)}
                  </div>
                );
              })}
            </div>
          );
        })}
      </div>
      {count === 0 && <p class="empty">{emptyText}</p>}
    </div>
  );
}

interface PlacedColumn {
  column: Column;
  /** Its index in the result. */
  at: number;
  /** Its ends, in pixels from the left end of the first column. */
  left: number;
  right: number;
}

/** Frozen columns are first. */
function placedColumns(
  columns: readonly Column[],
  widthsPx: readonly number[],
  frozen: readonly number[],
): PlacedColumn[] {
  const rest = [...columns.entries()].filter(([at]) => !frozen.includes(at));
  let right = 0;
  // A later result may have fewer columns than the one in which columns were frozen.
  return [...frozen.map((at) => [at, columns[at]] as const), ...rest].flatMap(([at, column]) =>
    column === undefined ? [] : [{ column, at, left: right, right: right += widthsPx[at] ?? COLUMN_MIN_PX }]
  );
}

const classOf = (type: string) => isNumeric(type) ? "number" : "";
const clamp = (index: number, count: number) => Math.max(0, Math.min(count - 1, index));

/**
 * Column widths from the first rows that come: others must not move what is being read. Columns of numbers grow with rows
 * that become visible, because numbers with cut-off digits would be misread.
 */
function useWidths(columns: readonly Column[], sample: GridRows["sample"]) {
  const key = JSON.stringify([columns, sample.length > 0, zone.value]);
  const px = useMemo(() => columns.map((column, at) => widthOf(column, sample, at)), [key]);
  const numeric = useMemo(() => columns.flatMap(({ type }, at) => isNumeric(type) ? [at] : []), [key]);
  const measured = useMemo(() => new Set<number>(), [px, sample]);
  const measure = (rows: GridRows, first: number, end: number) => {
    for (let index = first; index < end; index++) {
      const row = measured.has(index) ? undefined : rows.row(index);
      if (row === undefined) continue;
      measured.add(index);
      for (const at of numeric) px[at] = Math.max(px[at] ?? 0, widthFor(textOf(row[at]).length));
    }
  };
  return { px, measure };
}

function widthOf({ name, type }: Column, sample: GridRows["sample"], at: number): number {
  let characters = Math.max(name.length + 1, type.length);
  for (const row of sample.slice(0, SAMPLE)) {
    characters = Math.max(characters, Math.min(shownText(row[at], type, zone.value).length, 60));
  }
  return widthFor(characters);
}

const widthFor = (characters: number) =>
  Math.min(COLUMN_MAX_PX, Math.max(COLUMN_MIN_PX, Math.ceil(characters * CHARACTER_PX) + 26));

interface View {
  top: number;
  left: number;
  width: number;
  height: number;
}

/** Reports the visible part of the element, now and when it changes. */
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

/** Passes vertical wheel movements on, in pixels. */
function onWheel(element: HTMLElement, scrollBy: (px: number) => void): () => void {
  const listener = (event: WheelEvent) => {
    const { deltaX, deltaY, deltaMode, ctrlKey, shiftKey } = event;
    if (ctrlKey || shiftKey || Math.abs(deltaX) > Math.abs(deltaY)) return;
    event.preventDefault();
    const unitPx = deltaMode === WheelEvent.DOM_DELTA_PIXEL
      ? 1
      : deltaMode === WheelEvent.DOM_DELTA_LINE
      ? ROW_PX
      : element.clientHeight;
    scrollBy(deltaY * unitPx);
  };
  element.addEventListener("wheel", listener, { passive: false });
  return () => element.removeEventListener("wheel", listener);
}

/** Scrolls a column that is not frozen into view. */
function scrollAcross(box: HTMLElement, { left, right }: PlacedColumn, frozenPx: number): void {
  if (left - frozenPx < box.scrollLeft) box.scrollLeft = left - frozenPx;
  if (right > box.scrollLeft + box.clientWidth) box.scrollLeft = right - box.clientWidth;
}
