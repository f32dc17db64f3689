/** The health of the tables that the user may see. */
import { ScrollTable } from "../app/scroll-table.tsx";
import { useState } from "preact/hooks";
import { bytesText, countText } from "../results/summary.ts";
import { shownText } from "../results/cells.ts";
import { zone } from "../results/view-settings.ts";
import { recordsOf, usePolled } from "./polled.ts";
import { Search } from "./search.tsx";
import { Unavailable } from "./unavailable.tsx";

const EVERY_MS = 5000;
const SHOWN_MAX = 500;
const STATEMENT =
  "select t.table_name name, t.partitionBy, t.table_row_count, t.table_last_write_timestamp, t.table_max_timestamp, " +
  "t.table_suspended or coalesce(w.suspended, false) suspended, w.sequencerTxn - w.writerTxn lag, s.diskSize, " +
  "s.partitionCount from tables() t left join wal_tables() w on t.table_name = w.name " +
  "left join table_storage() s on t.table_name = s.tableName order by suspended desc, 1";

export function Tables() {
  const [search, setSearch] = useState("");
  const outcome = usePolled(STATEMENT, EVERY_MS);
  const all = recordsOf(outcome);
  const found = all.filter(({ name }) => String(name).toLowerCase().includes(search.trim().toLowerCase()));
  const ill = all.filter(({ suspended }) => suspended).length;
  return (
    <section class="card facts" aria-label="Tables">
      <h2>Tables</h2>
      <Unavailable what="Tables" outcome={outcome} />
      {outcome?.rows !== undefined && all.length === 0 && <p class="empty">There are no tables that you may see.</p>}
      {all.length > 0 && (
        <>
          <Search label={`Search ${countText(all.length, "table")}`} value={search} onChange={setSearch} />
          {ill > 0 && <p class="warning">{ill === 1 ? "One table is" : `${ill} tables are`} suspended.</p>}
          <ScrollTable
            label="Table of tables"
            columns={[
              "Table",
              "State",
              "Waits to be applied",
              "Rows",
              "On disk",
              "Partitions",
              "Last write",
              "Last row",
            ]}
            numbers={["Rows", "On disk", "Partitions"]}
          >
            {found.slice(0, SHOWN_MAX).map((one) => <TableRow key={String(one.name)} {...one} />)}
          </ScrollTable>
          {found.length > SHOWN_MAX && (
            <p class="empty">{(found.length - SHOWN_MAX).toLocaleString("en")} more: search for them.</p>
          )}
        </>
      )}
    </section>
  );
}

function TableRow(table: Record<string, unknown>) {
  const { name, suspended, lag, table_row_count: rows, partitionBy, partitionCount, diskSize } = table;
  const lagging = Number(lag ?? 0);
  const time = (value: unknown) => value === null ? "–" : shownText(value, "TIMESTAMP", zone.value);
  return (
    <tr class={suspended ? "error" : ""}>
      <td>
        <code>{String(name)}</code>
      </td>
      <td>{suspended ? "suspended" : rows === null ? "not read since the start" : "well"}</td>
      <td>{lagging === 0 ? "nothing" : `${lagging} transactions`}</td>
      <td class="number">{rows === null ? "–" : Number(rows).toLocaleString("en")}</td>
      <td class="number">{diskSize === null ? "–" : bytesText(Number(diskSize))}</td>
      <td class="number">
        {partitionBy === "NONE" ? "–" : `${partitionCount} by ${String(partitionBy).toLowerCase()}`}
      </td>
      <td class="whole">{time(table.table_last_write_timestamp)}</td>
      <td class="whole">{time(table.table_max_timestamp)}</td>
    </tr>
  );
}
