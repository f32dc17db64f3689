/** The result of an import: what was stored, and the lines and values that did not fit. */
import { ScrollTable } from "../app/scroll-table.tsx";
import { CSV_FILE, written } from "../results/copies.ts";
import { countText } from "../results/summary.ts";
import type { ImportFaults, ImportReport } from "../server/client.ts";
import { spooledRows } from "../server/results.ts";
import { saveFile } from "../store/files.ts";
import { notify } from "../store/notices.ts";

export function Report({ report: { error, table, imported, rejected, columns, faults }, onClose }: {
  report: ImportReport;
  onClose(): void;
}) {
  return (
    <>
      {error !== undefined ? <p class="error" role="alert">{error}</p> : (
        <p role="status">
          {countText(imported)} imported into {table}
          {rejected > 0 && `, ${countText(rejected)} left out`}.
        </p>
      )}
      {columns.length > 0 && (
        <ScrollTable label="Columns" kind="preview" columns={["Column", "Type", "Values that did not fit"]}>
          {columns.map(({ name, type, errors }) => (
            <tr key={name} class={errors > 0 ? "error" : ""}>
              <td>{name}</td>
              <td>{type}</td>
              <td>{errors.toLocaleString("en")}</td>
            </tr>
          ))}
        </ScrollTable>
      )}
      {faults !== undefined && faults.count > 0 && <Faults table={table} {...faults} />}
      <p class="buttons">
        {faults !== undefined && faults.count > 0 && (
          <button type="button" onClick={() => saveFaults(table, faults)}>Download the list</button>
        )}
        <button type="button" class="main" onClick={onClose}>Close</button>
      </p>
    </>
  );
}

function Faults({ first, count }: ImportFaults & { table: string }) {
  return (
    <>
      <h3>
        {first.length < count
          ? `The first ${first.length} of ${countText(count, "value")} and lines that did not fit`
          : "Values and lines that did not fit"}
      </h3>
      <ScrollTable
        label="Values and lines that did not fit"
        kind="preview faults"
        columns={["Line", "Column", "Found", "Reason"]}
      >
        {first.map(({ line, column, value, reason }, at) => (
          <tr key={at}>
            <td>{line.toLocaleString("en")}</td>
            <td>{column ?? "the line"}</td>
            <td class="values">{value === undefined ? "nothing" : value}</td>
            <td>{reason}</td>
          </tr>
        ))}
      </ScrollTable>
    </>
  );
}

const COLUMNS = [
  { name: "line", type: "LONG" },
  ...["column", "value", "reason"].map((name) => ({ name, type: "VARCHAR" })),
];

/** All of them: the server keeps those that are not in the report for a while. */
async function saveFaults(table: string, { first, result }: ImportFaults): Promise<void> {
  try {
    const dataset = first.map(({ line, column, value, reason }) => [line, column ?? null, value ?? null, reason]);
    const rows = result === undefined
      ? { columns: COLUMNS, dataset, count: dataset.length }
      : await spooledRows(result);
    const { parts } = await written(rows, CSV_FILE);
    saveFile(`${table}-import.csv`, parts, "text/csv");
  } catch (error) {
    notify((error as Error).message);
  }
}
