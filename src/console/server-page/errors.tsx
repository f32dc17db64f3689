/** The last errors of the server, and the statements that it has refused. */
import { ScrollTable } from "../app/scroll-table.tsx";
import { useState } from "preact/hooks";
import { countText } from "../results/summary.ts";
import { shownText } from "../results/cells.ts";
import { zone } from "../results/view-settings.ts";
import { recordsOf, usePolled } from "./polled.ts";
import { Search } from "./search.tsx";
import { Unavailable } from "./unavailable.tsx";

const EVERY_MS = 5000;
const STATEMENT = "select timestamp, level, logger, message from recent_errors()";

export function Errors() {
  const [search, setSearch] = useState("");
  const outcome = usePolled(STATEMENT, EVERY_MS);
  const all = recordsOf(outcome);
  const found = all.filter((one) => Object.values(one).join(" ").toLowerCase().includes(search.toLowerCase()));
  return (
    <section class="card facts" aria-label="Errors">
      <h2>Recent errors</h2>
      <Unavailable what="Errors" outcome={outcome} />
      {outcome?.rows !== undefined && all.length === 0 && (
        <p class="empty">No errors, and no refused statements, since the server started.</p>
      )}
      {all.length > 0 && (
        <>
          <Search label={`Search ${countText(all.length, "error")}`} value={search} onChange={setSearch} />
          <ScrollTable label="Table of errors" columns={["Time", "Kind", "Where", "Message"]}>
            {found.map(({ timestamp, level, logger, message }, at) => (
              <tr key={`${timestamp} ${at}`} class={level === "INFO" ? "" : "error"}>
                <td class="whole">{shownText(timestamp, "TIMESTAMP", zone.value)}</td>
                <td>{level === "INFO" ? "refused" : String(level).toLowerCase()}</td>
                <td class="word">{String(logger)}</td>
                <td class="message">
                  <code>{String(message)}</code>
                </td>
              </tr>
            ))}
          </ScrollTable>
        </>
      )}
    </section>
  );
}
