/** The statements that run: whose, since when, how far, and a button that cancels each. */
import { ScrollTable } from "../app/scroll-table.tsx";
import { useState } from "preact/hooks";
import { bytesText } from "../results/summary.ts";
import { query } from "../server/client.ts";
import { notify } from "../store/notices.ts";
import { durationText } from "./live-charts.ts";
import { recordsOf, usePolled } from "./polled.ts";
import { Unavailable } from "./unavailable.tsx";

const EVERY_MS = 1000;
/** The page's own statement is omitted. */
const STATEMENT = "select * from query_activity() where query not like '%from query_activity() where query not like%'";

export function Running() {
  const [version, setVersion] = useState(0);
  const outcome = usePolled(STATEMENT, EVERY_MS, version);
  const statements = recordsOf(outcome);
  const cancel = async (id: unknown) => {
    const { error } = await query(`cancel query ${Number(id)}`);
    notify(error?.message ?? `Statement ${id} was cancelled.`);
    setVersion(version + 1);
  };
  return (
    <section class="card facts" aria-label="Running statements">
      <h2>Running statements</h2>
      <Unavailable what="Statements" outcome={outcome} />
      {outcome?.rows !== undefined && statements.length === 0 && <p class="empty">Nothing runs at the moment.</p>}
      {statements.length > 0 && (
        <ScrollTable
          label="Table of running statements"
          columns={["Statement", "User", "From", "For", "Progress", "Memory", ""]}
        >
          {statements.map((one) => (
            <tr key={String(one.query_id)}>
              <td class="text" title={String(one.query)}>
                <code>{String(one.query)}</code>
              </td>
              <td>{String(one.username)}</td>
              <td>{[one.wire, one.client_address, one.application_name].filter(Boolean).join(" ")}</td>
              <td title={`since ${one.query_start}`}>{durationText(Number(one.seconds))}</td>
              <td>
                <Progress {...one} />
              </td>
              <td>{bytesText(Number(one.memory_bytes))}</td>
              <td>
                {one.state === "cancelled" ? "being cancelled" : (
                  <button
                    type="button"
                    aria-label={`Cancel statement ${one.query_id}`}
                    disabled={one.phase === "writing"}
                    title={one.phase === "writing" ? "It is writing its rows and cannot be cancelled now." : undefined}
                    onClick={() => cancel(one.query_id)}
                  >
                    Cancel
                  </button>
                )}
              </td>
            </tr>
          ))}
        </ScrollTable>
      )}
    </section>
  );
}

function Progress({ phase, rows_read, rows_to_read, rows_written }: Record<string, unknown>) {
  const read = Number(rows_read), all = rows_to_read === null ? null : Number(rows_to_read);
  const count = (value: number) => Intl.NumberFormat("en", { notation: "compact" }).format(value);
  const written = Number(rows_written) > 0 ? `, ${count(Number(rows_written))} written` : "";
  return (
    <>
      {all !== null && <progress max={all} value={Math.min(read, all)} aria-label="Rows read" />}
      <small>{String(phase)}{all === null ? "" : `, ${count(read)} of ${count(all)} rows`}{written}</small>
    </>
  );
}
