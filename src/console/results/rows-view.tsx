/** The rows of an outcome: the grid and what can be done with it. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { addToDashboard } from "../dashboards/add-panel.ts";
import { ask } from "../app/dialogs.tsx";
import { MenuButton } from "../app/menu.tsx";
import { ChartView } from "../charts/chart-view.tsx";
import { type Column, download, query, type Rows } from "../server/client.ts";
import { release, runStatement } from "../server/results.ts";
import { copyText } from "../store/clipboard.ts";
import { refreshing, setRefreshing } from "../store/refresh.ts";
import { rerun } from "../store/runs.ts";
import { quoted } from "../store/schema.ts";
import { notify } from "../store/notices.ts";
import { isNumeric, textOf } from "./cells.ts";
import { COPIES } from "./copies.ts";
import { Grid, type GridRows } from "./grid.tsx";
import { Pages } from "./pages.ts";
import { PlanTree } from "./plan-tree.tsx";
import { showValue } from "./show-value.ts";
import { sorted, type Sorting } from "./sorting.ts";
import { countText } from "./summary.ts";
import { isChart, zone } from "./view-settings.ts";

const REFRESH_SECONDS = [0, 1, 5, 30, 60];
/** Rows of a spooled result that are copied, and that are drawn. */
const COPIED_MAX = 50_000;
const DRAWN_MAX = 50_000;

export function RowsView({ rows, statement }: { rows: Rows; statement: string }) {
  const [isText, setText] = useState(false);
  if (rows.plan === undefined) return <PlainRows rows={rows} statement={statement} />;
  const choice = (name: string, value: boolean) => (
    <button
      type="button"
      aria-pressed={isText === value}
      onClick={() => setText(value)}
    >
      {name}
    </button>
  );
  return (
    <>
      <div class="toolbar">
        {choice("Tree", false)}
        {choice("Text", true)}
      </div>
      {isText ? <PlainRows rows={rows} statement={statement} /> : <PlanTree plan={rows.plan} />}
    </>
  );
}

function PlainRows({ rows: given, statement }: { rows: Rows; statement: string }) {
  const { rows, sorting, sortingState, sort } = useSorting(given, statement);
  const { shown, pages, isExpired } = useRows(rows, sorting);
  const { columns } = rows;
  const copy = async (name: string, make: typeof COPIES[number]["make"]) => {
    const dataset = rows.spool === undefined ? shown.sample as unknown[][] : await pages!.first(COPIED_MAX);
    const what = dataset.length < rows.count ? `The first ${countText(dataset.length)}` : countText(dataset.length);
    await copyText(make({ columns, dataset }), `${what} as ${name}`);
  };
  return (
    <>
      <div class="toolbar">
        <button type="button" aria-pressed={!isChart.value} onClick={() => isChart.value = false}>Rows</button>
        <button type="button" aria-pressed={isChart.value} onClick={() => isChart.value = true}>Chart</button>
        <MenuButton
          text="Copy"
          items={COPIES.map(({ name, make }) => ({ name: `As ${name}`, run: () => copy(name, make).catch(tellFault) }))}
        />
        <MenuButton
          text="Download"
          items={[["CSV", "csv"], ["Parquet", "parquet"]].map(([name, format]) => ({
            name: `All rows as ${name}`,
            run: () => download(statement, format).catch(({ message }) => notify(message)),
          }))}
        />
        <MenuButton
          text={zone.value === "UTC" ? "UTC" : "Local time"}
          items={[["UTC", "UTC"], ["local", "Local time"]].map(([value, name]) => ({
            name,
            isChosen: zone.value === value,
            run: () => zone.value = value as typeof zone.value,
          }))}
        />
        <MenuButton
          text={refreshing.value === 0 ? "Refresh" : `Every ${refreshing.value} s`}
          items={REFRESH_SECONDS.map((seconds) => ({
            name: seconds === 0 ? "By hand" : `Every ${seconds} s`,
            isChosen: refreshing.value === seconds,
            run: () => setRefreshing(seconds),
          }))}
        />
        <button type="button" onClick={() => addToDashboard(statement, isChart.value ? "chart" : "table")}>
          Add to a dashboard
        </button>
        {sortingState !== undefined && (
          <span class="hint" role="status">
            The server sorts … <button type="button" onClick={sortingState.cancel}>Stop</button>
          </span>
        )}
      </div>
      {isExpired && (
        <p class="summary error" role="alert">
          The server has removed this result. <button type="button" class="main" onClick={rerun}>Run again</button>
        </p>
      )}
      {isChart.value ? <DrawnRows rows={rows} pages={pages} statement={statement} /> : (
        <Grid
          columns={columns}
          rows={shown}
          sorting={sorting}
          onSort={sort}
          onStatistics={(column) => showStatistics(statement, column)}
          onOpen={showValue}
        />
      )}
    </>
  );
}

/** Rows in the page are sorted here. Of a spooled result the server is asked for the rows in order. */
function useSorting(given: Rows, statement: string) {
  const [sorting, setSorting] = useState<Sorting>();
  const [ordered, setOrdered] = useState<Rows>();
  const [sortingState, setSortingState] = useState<{ cancel(): void }>();
  // The order belongs to the rows that were sorted.
  useEffect(() => {
    setOrdered(undefined);
    if (given.spool !== undefined) setSorting(undefined);
  }, [given.spool?.id]);
  const spoolId = ordered?.spool?.id;
  useEffect(() => spoolId === undefined ? undefined : () => release(spoolId), [spoolId]);
  useEffect(() => () => sortingState?.cancel(), [sortingState]);
  const sort = async (next: Sorting | undefined) => {
    if (given.spool === undefined || next === undefined) {
      setSorting(next);
      return setOrdered(undefined);
    }
    if (given.spool.isRunning) return notify("The rows can be sorted when all have come.");
    const controller = new AbortController(), state = { cancel: () => controller.abort() };
    setSortingState(state);
    try {
      const { rows, error } = await runStatement(statement, { signal: controller.signal, sorting: next });
      if (rows === undefined) return notify(`The server cannot sort these rows: ${error?.message}`);
      setSorting(next);
      setOrdered(rows);
    } catch (error) {
      if (!controller.signal.aborted) throw error;
    } finally {
      setSortingState((current) => current === state ? undefined : current);
    }
  };
  return { rows: ordered ?? given, sorting, sortingState, sort };
}

/** The rows for the grid: those in the page, or pages of a spooled result. */
function useRows(rows: Rows, sorting: Sorting | undefined) {
  const { spool, dataset, count } = rows;
  const [version, setVersion] = useState(0);
  const [expired, setExpired] = useState<string>();
  const pages = useMemo(() => {
    if (spool === undefined) return undefined;
    return new Pages(rows, () => setVersion((before) => before + 1), (message, isGone) => {
      if (isGone) setExpired(spool.id);
      else notify(message);
    });
  }, [spool?.id]);
  useEffect(() => () => pages?.close(), [pages]);
  const shown = useMemo((): GridRows => {
    pages?.grow(rows);
    if (pages !== undefined) {
      return {
        count,
        sample: dataset,
        row: (index) => pages.row(index),
        want: (first, end) => pages.want(first, end),
      };
    }
    const list = sorting === undefined ? dataset : sorted(rows, sorting);
    return { count: list.length, sample: list, row: (index) => list[index] };
  }, [pages, rows, sorting, version]);
  return { shown, pages, isExpired: spool !== undefined && spool.id === expired };
}

/** A chart needs its rows at once. */
function DrawnRows({ rows, pages, statement }: { rows: Rows; pages: Pages | undefined; statement: string }) {
  const [drawn, setDrawn] = useState<Rows>();
  useEffect(() => {
    if (pages === undefined || rows.spool?.isRunning) return setDrawn(rows);
    const controller = new AbortController();
    pages.first(DRAWN_MAX, controller.signal).then(
      (dataset) => setDrawn({ ...rows, dataset }),
      (error) => controller.signal.aborted || tellFault(error),
    );
    return () => controller.abort();
  }, [rows, pages]);
  if (drawn === undefined) return <p class="summary">The rows are loaded …</p>;
  return (
    <>
      {drawn.dataset.length < rows.count && (
        <p class="summary">The first {countText(drawn.dataset.length)} of {countText(rows.count)} are drawn.</p>
      )}
      <ChartView rows={drawn} statement={statement} />
    </>
  );
}

const tellFault = (error: unknown) => notify(error instanceof Error ? error.message : String(error));

/** Over all rows of the statement, not only over those that are shown. */
async function showStatistics(statement: string, { name, type }: Column): Promise<void> {
  const column = quoted(name);
  const parts = [
    'count() as "rows"',
    `count(${column}) as "not null"`,
    `count_distinct(${column}) as "distinct"`,
    `min(${column}) as "smallest"`,
    `max(${column}) as "largest"`,
    ...isNumeric(type) ? [`avg(${column}) as "average"`, `stddev(${column}) as "standard deviation"`] : [],
  ];
  const { rows, error } = await query(`select ${parts.join(", ")} from (${statement})`);
  if (rows === undefined) return notify(error?.message ?? "There is nothing to tell.");
  const text = rows.columns.map((one, at) => `${one.name.padEnd(20)}${textOf(rows.dataset[0][at])}`).join("\n");
  await ask({ title: `${name} (${type})`, text, confirm: "Close" });
}
