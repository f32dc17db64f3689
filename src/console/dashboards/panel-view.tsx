/** A panel: runs its statement with the viewer's rights and shows the rows. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { type MenuItem, openMenu } from "../app/menu.tsx";
import type { Unit } from "../charts/chart.tsx";
import { LazyChart } from "../charts/lazy-chart.tsx";
import { dataOf, shapeOf, typeFor } from "../charts/shape.ts";
import { isNumeric, textOf } from "../results/cells.ts";
import { Grid } from "../results/grid.tsx";
import { showValue } from "../results/show-value.ts";
import { sorted, type Sorting } from "../results/sorting.ts";
import { bytesText } from "../results/summary.ts";
import type { Column, Rows } from "../server/client.ts";
import { Denied } from "../sign-in/denied.tsx";
import { isServerAway, returns } from "../store/connection.ts";
import { openTab } from "../store/tabs.ts";
import type { Panel, Variable } from "./model.ts";
import { type PanelOutcome, panelOutcome } from "./panel-outcome.ts";
import type { Range } from "./range.ts";
import { fullStatement, VariableError } from "./statement.ts";

interface Props {
  panel: Panel;
  range: Range;
  /** Undefined while they are loaded. */
  variables: readonly Variable[] | undefined;
  /** Incremented to run the statement again. */
  tick: number;
  actions: readonly MenuItem[];
  /** Undefined: the previous range. */
  onZoom(range: Range | undefined): void;
}

export function PanelView({ panel, range, variables, tick, actions, onZoom }: Props) {
  const { title, statement, width, height } = panel;
  const key = JSON.stringify([range, statement]);
  const prepared = useMemo(() => textFor(statement, range, variables), [key, variables]);
  const { text, fault } = prepared;
  const { outcome, isRunning } = useOutcome(panel, text, range, tick);
  const items = [
    ...text === undefined ? [] : [{ name: "Open in the editor", run: () => openTab(text, title) }],
    ...actions,
  ];
  return (
    <section class="card panel" data-width={width} data-height={height} aria-label={title} aria-busy={isRunning}>
      <div class="panel-head">
        <h3>{title}</h3>
        <button
          type="button"
          class="icon"
          aria-label={`Actions of ${title}`}
          aria-haspopup="menu"
          onClick={(event) => openMenu(event.currentTarget, items)}
        >
          ⋯
        </button>
      </div>
      {fault !== undefined
        ? <p class="panel-error" role="alert">{fault}</p>
        : <Content panel={panel} outcome={outcome} onZoom={onZoom} />}
    </section>
  );
}

/** Empty while the variables are loaded. `fault`: the error of an invalid value. */
function textFor(
  statement: string,
  range: Range,
  variables: readonly Variable[] | undefined,
): { text?: string; fault?: string } {
  try {
    return variables === undefined ? {} : { text: fullStatement(statement, range, variables) };
  } catch (error) {
    if (error instanceof VariableError) return { fault: error.message };
    throw error;
  }
}

/** The last rows stay until there are newer ones, and while the server is away. */
function useOutcome(panel: Panel, text: string | undefined, range: Range, tick: number) {
  const [outcome, setOutcome] = useState<PanelOutcome>();
  const [isRunning, setRunning] = useState(false);
  const { kind, chartType, statement } = panel, rangeKey = JSON.stringify(range);
  useEffect(() => {
    if (text === undefined) return;
    const controller = new AbortController(), { signal } = controller;
    setRunning(true);
    panelOutcome(panel, text, range, signal).then((next) => {
      if (signal.aborted) return;
      setRunning(false);
      if (!isServerAway.value) setOutcome(next);
    });
    return () => controller.abort();
  }, [text, kind, chartType, statement, rangeKey, tick, returns.value]);
  return { outcome, isRunning };
}

interface ContentProps extends Pick<Props, "panel" | "onZoom"> {
  outcome: PanelOutcome | undefined;
}

function Content({ panel, outcome, onZoom }: ContentProps) {
  if (outcome === undefined) return <p class="empty" role="status">Loading …</p>;
  const { rows, error, note } = outcome;
  if (error !== undefined) {
    return (
      <div class="panel-error" role="alert">
        <p>{error.message}</p>
        <Denied message={error.message} />
      </div>
    );
  }
  const [first] = rows?.dataset ?? [];
  if (rows === undefined || first === undefined) return <p class="empty">No rows in this time range.</p>;
  if (panel.kind === "number") return <Numbers panel={panel} columns={rows.columns} row={first} />;
  return (
    <>
      {panel.kind === "table" ? <Table rows={rows} /> : <Drawing panel={panel} rows={rows} onZoom={onZoom} />}
      {note !== undefined && <p class="note">{note}</p>}
    </>
  );
}

function Numbers({ panel, columns, row }: { panel: Panel; columns: readonly Column[]; row: readonly unknown[] }) {
  const { textOf: shown } = unitOf(panel.unit) ?? { textOf: (value: number) => value.toLocaleString("en") };
  const numbers = columns.flatMap(({ name, type }, at) => isNumeric(type) ? [{ name, value: row[at] }] : []);
  const all = numbers.length > 0 ? numbers : columns.map(({ name }, at) => ({ name, value: row[at] }));
  return (
    <div class="panel-numbers">
      {all.map(({ name, value }) => {
        const text = value === null ? "–" : numbers.length > 0 ? shown(Number(value)) : textOf(value);
        return (
          <p key={name}>
            <strong style={{ fontSize: `clamp(1rem, ${Math.round(145 / text.length)}cqi, 2.4rem)` }}>{text}</strong>
            {all.length > 1 && <small>{name}</small>}
          </p>
        );
      })}
    </div>
  );
}

function Table({ rows }: { rows: Rows }) {
  const [sorting, setSorting] = useState<Sorting>();
  const list = useMemo(() => sorting === undefined ? rows.dataset : sorted(rows, sorting), [rows, sorting]);
  return (
    <Grid
      columns={rows.columns}
      rows={{ count: list.length, sample: list, row: (index) => list[index] }}
      sorting={sorting}
      onSort={setSorting}
      onOpen={showValue}
    />
  );
}

function Drawing({ panel, rows, onZoom }: Pick<Props, "panel" | "onZoom"> & { rows: Rows }) {
  const shape = useMemo(() => shapeOf(rows), [JSON.stringify(rows.columns), rows.dataset]);
  const type = shape && typeFor(shape, panel.chartType);
  const data = useMemo(() => shape && type && dataOf(rows, shape, type), [rows, shape, type]);
  if (shape === undefined || type === undefined || data === undefined) {
    return <p class="empty">A chart needs a column of numbers, and one of times, texts or numbers for x.</p>;
  }
  return (
    <LazyChart
      data={data}
      shape={shape}
      type={type}
      unit={unitOf(panel.unit)}
      {...shape.xKind === "time" && {
        group: "dashboard",
        onZoom: (ends: readonly [number, number] | undefined) =>
          onZoom(ends && { from: timeOf(ends[0]), to: timeOf(ends[1]) }),
      }}
    />
  );
}

const timeOf = (at: number) => new Date(at).toISOString();
const round = (value: number) => +value.toPrecision(6);

const UNIT_TEXTS: Record<Panel["unit"], Unit | undefined> = {
  plain: undefined,
  bytes: { textOf: bytesText, isBinary: true },
  percent: { textOf: (value) => `${round(value)} %` },
  seconds: { textOf: (value) => `${round(value)} s` },
  milliseconds: { textOf: (value) => `${round(value)} ms` },
};

const unitOf = (unit: Panel["unit"]) => UNIT_TEXTS[unit];
