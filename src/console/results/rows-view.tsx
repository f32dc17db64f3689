/** The rows of an outcome: the grid and what can be done with it. */
import { useMemo, useState } from "preact/hooks";
import { ask } from "../app/dialogs.tsx";
import { MenuButton } from "../app/menu.tsx";
import { ChartView } from "../charts/chart-view.tsx";
import { type Column, exportUrl, query, type Rows } from "../server/client.ts";
import { copyText } from "../store/clipboard.ts";
import { refreshing, setRefreshing } from "../store/refresh.ts";
import { quoted } from "../store/schema.ts";
import { notify } from "../store/notices.ts";
import { isNumeric, textOf } from "./cells.ts";
import { COPIES } from "./copies.ts";
import { Grid } from "./grid.tsx";
import { sorted, type Sorting } from "./sorting.ts";
import { isChart, zone } from "./view-settings.ts";

const REFRESH_SECONDS = [0, 1, 5, 30, 60];

export function RowsView({ rows, statement }: { rows: Rows; statement: string }) {
  const [sorting, setSorting] = useState<Sorting>();
  const { columns, dataset, count } = rows;
  const shown = useMemo(() => sorting === undefined ? dataset : sorted(rows, sorting), [rows, sorting]);
  const onSort = (next: Sorting | undefined) => {
    if (next !== undefined && count > dataset.length) {
      notify("Only the rows that are shown are sorted: add ORDER BY for all.");
    }
    setSorting(next);
  };
  return (
    <>
      <div class="toolbar">
        <button type="button" aria-pressed={!isChart.value} onClick={() => isChart.value = false}>Rows</button>
        <button type="button" aria-pressed={isChart.value} onClick={() => isChart.value = true}>Chart</button>
        <MenuButton
          text="Copy"
          items={COPIES.map(({ name, make }) => ({
            name: `As ${name}`,
            run: () => copyText(make({ columns, dataset: shown }), `${shown.length} rows as ${name}`),
          }))}
        />
        <MenuButton
          text="Download"
          items={[["CSV", "csv"], ["Parquet", "parquet"]].map(([name, format]) => ({
            name: `All rows as ${name}`,
            run: () => location.assign(exportUrl(statement, format)),
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
      </div>
      {isChart.value ? <ChartView rows={rows} /> : (
        <Grid
          columns={columns}
          dataset={shown}
          sorting={sorting}
          onSort={onSort}
          onStatistics={(column) => showStatistics(statement, column)}
          onOpen={showValue}
        />
      )}
    </>
  );
}

async function showValue({ name, type }: Column, value: unknown): Promise<void> {
  const text = textOf(value);
  const isCopied = await ask({
    title: `${name} (${type}, ${text.length} characters)`,
    text: readable(text),
    confirm: "Copy",
  });
  if (isCopied !== undefined) await copyText(text, "The value");
}

/** JSON is shown with a line for each member. */
function readable(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

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
