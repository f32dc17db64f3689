/** The settings, where each value comes from, and which wait for a restart. */
import { countText } from "../results/summary.ts";
import { ScrollTable } from "../app/scroll-table.tsx";
import { useState } from "preact/hooks";
import { query } from "../server/client.ts";
import { notify } from "../store/notices.ts";
import { recordsOf, usePolled } from "./polled.ts";
import { Search } from "./search.tsx";
import { Unavailable } from "./unavailable.tsx";

const EVERY_MS = 10_000;
const STATEMENT = "select s.property_path name, s.env_var_name env, s.value, s.value_source source, s.reloadable, " +
  "p.property_path is not null waits, p.pending_value pending " +
  "from (show parameters) s left join pending_config() p on s.property_path = p.property_path order by waits desc, 1";

const SOURCES: Record<string, string> = { default: "default", conf: "server.conf", env: "environment" };

export function Settings() {
  const [search, setSearch] = useState(""), [onlyChanged, setOnlyChanged] = useState(true);
  const [version, setVersion] = useState(0);
  const outcome = usePolled(STATEMENT, EVERY_MS, version);
  const all = recordsOf(outcome);
  const found = all.filter(({ name, env, source, waits }) =>
    `${name} ${env}`.toLowerCase().includes(search.trim().toLowerCase()) &&
    (!onlyChanged || search.trim() !== "" || waits || source !== "default")
  );
  const waiting = all.filter(({ waits }) => waits).length;
  const reload = async () => {
    const { rows, error } = await query("select reload_config()");
    notify(error?.message ?? (rows?.dataset[0]?.[0] ? "Changed settings are in effect." : "No setting took effect."));
    setVersion(version + 1);
  };
  return (
    <section class="card facts" aria-label="Settings">
      <h2>Settings</h2>
      <Unavailable what="Settings" outcome={outcome} />
      {all.length > 0 && (
        <>
          <div class="tools">
            <Search label={`Search ${countText(all.length, "setting")}`} value={search} onChange={setSearch} />
            <label class="check">
              <input
                type="checkbox"
                checked={onlyChanged}
                onChange={(event) => setOnlyChanged(event.currentTarget.checked)}
              />
              Only those that are set
            </label>
            <button type="button" onClick={reload}>Read server.conf again</button>
          </div>
          {waiting > 0 && (
            <p class="warning">
              {waiting === 1 ? "One changed setting waits" : `${waiting} changed settings wait`} for a restart.
            </p>
          )}
          {found.length === 0 && (
            <p class="empty">{search === "" ? "All settings have their defaults." : "Nothing found."}</p>
          )}
          {found.length > 0 && (
            <ScrollTable label="Table of settings" columns={["Setting", "Value", "From", "A change takes effect"]}>
              {found.map(({ name, env, value, source, reloadable, waits, pending }) => (
                <tr key={String(name)} class={waits ? "waits" : ""}>
                  <td title={`In the environment: ${env}`}>
                    <code>{String(name)}</code>
                  </td>
                  <td class="text">
                    <code>{String(value ?? "")}</code>
                    {waits && (
                      <>
                        → <code>{String(pending)}</code>
                      </>
                    )}
                  </td>
                  <td>{SOURCES[String(source)] ?? String(source)}</td>
                  <td>{waits ? "waits for a restart" : reloadable ? "when it is read again" : "at a restart"}</td>
                </tr>
              ))}
            </ScrollTable>
          )}
        </>
      )}
    </section>
  );
}
