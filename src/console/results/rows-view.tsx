/** The rows of an outcome: the grid and its actions. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { addToDashboard } from "../dashboards/add-panel.ts";
import { ask } from "../app/dialogs.tsx";
import { MenuButton } from "../app/menu.tsx";
import { ChartView } from "../charts/chart-view.tsx";
import { type Column, download, type Rows } from "../server/client.ts";
import { ExpiredError, release, saveParquet, sortedResult } from "../server/results.ts";
import { copyText } from "../store/clipboard.ts";
import { saveFile } from "../store/files.ts";
import { refreshing, setRefreshing } from "../store/refresh.ts";
import { rerun } from "../store/runs.ts";
import { notify } from "../store/notices.ts";
import { COPIES, CSV_FILE, type TextForm, written } from "./copies.ts";
import { Grid, type GridRows } from "./grid.tsx";
import { Pages } from "./pages.ts";
import { PlanTree } from "./plan-tree.tsx";
import { showValue } from "./show-value.ts";
import { sorted, type Sorting } from "./sorting.ts";
import { ColumnStatistics } from "./statistics.ts";
import { bytesText, countText } from "./summary.ts";
import { isChart, zone } from "./view-settings.ts";
import { eachPage, isWhole } from "./whole.ts";

const ZONES = [{ value: "UTC", name: "UTC" }, { value: "local", name: "Local time" }] as const;
const REFRESH_SECONDS = [0, 1, 5, 30, 60];

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
  const work = useWork();
  const { rows, sorting, sort } = useSorting(given, work.start, (error) => tellFault(error));
  const { shown, isExpired, expire } = useRows(rows, sorting);
  const { columns } = rows;
  // In the order of the grid.
  const inOrder = rows.spool === undefined ? { ...rows, dataset: shown.sample as unknown[][] } : rows;
  const tellFault = (error: unknown) => error instanceof ExpiredError ? expire() : notify((error as Error).message);
  return (
    <>
      <div class="toolbar">
        <button type="button" aria-pressed={!isChart.value} onClick={() => isChart.value = false}>Rows</button>
        <button type="button" aria-pressed={isChart.value} onClick={() => isChart.value = true}>Chart</button>
        <MenuButton
          text="Copy"
          items={COPIES.map((form) => ({
            name: `As ${form.name}`,
            run: () => copyRows(inOrder, form, work.start).catch(tellFault),
          }))}
        />
        <MenuButton
          text="Download"
          items={[
            { name: "All rows as CSV", run: () => downloadCsv(inOrder, statement, work.start).catch(tellFault) },
            { name: "All rows as Parquet", run: () => downloadParquet(rows, statement).catch(tellFault) },
          ]}
        />
        <MenuButton
          text={zone.value === "UTC" ? "UTC" : "Local time"}
          items={ZONES.map(({ value, name }) => ({
            name,
            isChosen: zone.value === value,
            run: () => zone.value = value,
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
        {work.text !== undefined && (
          <span class="hint" role="status">
            {work.text} <button type="button" onClick={work.stop}>Stop</button>
          </span>
        )}
      </div>
      {isExpired && (
        <p class="summary error" role="alert">
          The server has removed this result. <button type="button" class="main" onClick={rerun}>Run again</button>
        </p>
      )}
      {isChart.value ? <ChartView rows={rows} statement={statement} onExpired={expire} /> : isFirstAwaited(rows)
        ? (
          // The widths of columns come from the first rows.
          <div class="grid" />
        )
        : (
          <Grid
            columns={columns}
            rows={shown}
            emptyText={rows.spool?.isRunning ? "" : "No rows."}
            sorting={sorting}
            onSort={sort}
            onStatistics={(column) => showStatistics(rows, column, work.start).catch(tellFault)}
            onOpen={showValue}
          />
        )}
    </>
  );
}

const isFirstAwaited = ({ spool, count }: Rows) => spool?.isRunning === true && count === 0;

/** Rows in the page are sorted here, those of a spooled result by the server. */
function useSorting(given: Rows, start: Start, onFault: (error: unknown) => void) {
  const [sorting, setSorting] = useState<Sorting>();
  const [ordered, setOrdered] = useState<Rows>();
  // The order belongs to the rows that were sorted.
  useEffect(() => {
    setOrdered(undefined);
    if (given.spool !== undefined) setSorting(undefined);
  }, [given.spool?.id]);
  const spoolId = ordered?.spool?.id;
  useEffect(() => spoolId === undefined ? undefined : () => release(spoolId), [spoolId]);
  const sort = async (next: Sorting | undefined) => {
    if (given.spool === undefined || next === undefined) {
      setSorting(next);
      return setOrdered(undefined);
    }
    if (given.spool.isRunning) return notify("The rows can be sorted when all have come.");
    const { id } = given.spool;
    await start("The server sorts …", async (signal) => {
      const { rows, error } = await sortedResult(id, next, signal);
      if (rows === undefined) return notify(`The server cannot sort these rows: ${error?.message}`);
      setSorting(next);
      setOrdered(rows);
    }).catch(onFault);
  };
  return { rows: ordered ?? given, sorting, sort };
}

/** The rows for the grid: those in the page, or pages of a spooled result. */
function useRows(rows: Rows, sorting: Sorting | undefined) {
  const { spool, keptId, dataset, count } = rows, id = spool?.id ?? keptId;
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
  return { shown, isExpired: id !== undefined && id === expired, expire: () => setExpired(id) };
}

/** Shows a long operation above the rows, with a button to stop it. The next operation stops it. */
function useWork() {
  const [text, setText] = useState<string>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const start = async (
    first: string,
    work: (signal: AbortSignal, tell: (text: string) => void) => Promise<void>,
  ): Promise<void> => {
    running.current?.abort();
    const controller = running.current = new AbortController(), { signal } = controller;
    setText(first);
    try {
      await work(signal, (text) => signal.aborted || setText(text));
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      if (running.current === controller) setText(undefined);
    }
  };
  const stop = () => {
    running.current?.abort();
    setText(undefined);
  };
  return { text, start, stop };
}

type Start = ReturnType<typeof useWork>["start"];

/** Maximum number of characters in a copy, because browsers hold it several times. */
const COPY_MAX = 32 << 20;

async function copyRows(rows: Rows, form: TextForm, start: Start): Promise<void> {
  await start("The rows are copied …", async (signal, tell) => {
    const onProgress = (count: number) =>
      tell(`${count.toLocaleString("en")} of ${countText(rows.count)} are copied …`);
    const { parts, rowCount } = await written(rows, form, COPY_MAX, { signal, onProgress });
    const what = rowCount < rows.count
      ? `The first ${rowCount.toLocaleString("en")} of ${countText(rows.count)} as ${form.name}, the ${
        bytesText(COPY_MAX)
      } that a copy may have,`
      : `${countText(rowCount)} as ${form.name}`;
    await copyText(parts.join(""), what, rowCount === 1 ? "is" : "are");
  });
}

/**
 * Writes the rows in their order on the page. Rows that the server has omitted are only in the file of the statement
 * run again.
 */
async function downloadCsv(rows: Rows, statement: string, start: Start): Promise<void> {
  if (!isWhole(rows)) return await download(statement, "csv");
  await start("The rows are read …", async (signal, tell) => {
    const onProgress = (count: number) => tell(`${count.toLocaleString("en")} of ${countText(rows.count)} are read …`);
    const { parts } = await written(rows, CSV_FILE, Infinity, { signal, onProgress });
    saveFile(`sundial-query-${Date.now()}.csv`, parts, "text/csv");
  });
}

/** The rows that are there, in the order of the statement if the page has sorted them. */
async function downloadParquet(rows: Rows, statement: string): Promise<void> {
  const id = rows.spool?.id ?? rows.keptId;
  // Spooled rows have no bytes of BINARY columns.
  const hasAll = isWhole(rows) && id !== undefined && rows.columns.every(({ type }) => type !== "BINARY");
  await (hasAll ? saveParquet(id) : download(statement, "parquet"));
}

async function showStatistics(rows: Rows, { name, type }: Column, start: Start): Promise<void> {
  const statistics = new ColumnStatistics(type), at = rows.columns.findIndex((column) => column.name === name);
  await start("The column is read …", async (signal, tell) => {
    const onProgress = (count: number) => tell(`${count.toLocaleString("en")} of ${countText(rows.count)} are read …`);
    await eachPage(rows, (dataset) => dataset.forEach((row) => statistics.add(row[at])), { signal, onProgress });
  });
  const text = statistics.lines().map(([what, value]) => `${what.padEnd(20)}${value}`).join("\n");
  const left = isWhole(rows) ? "" : `, of the first ${countText(rows.count)}`;
  const title = `${name} (${type})${left}`;
  if (await ask({ title, text, confirm: "Copy", cancel: "Close" }) !== undefined) {
    await copyText(text, "The statistics", "are");
  }
}
