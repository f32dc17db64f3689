/** The list of dashboards. */
import { ScrollTable } from "../app/scroll-table.tsx";
import { useEffect, useState } from "preact/hooks";
import { DashboardView } from "./dashboard-view.tsx";
import { type DashboardHead, listDashboards } from "../server/dashboards.ts";
import { shownText } from "../results/cells.ts";
import { zone } from "../results/view-settings.ts";
import { returns } from "../store/connection.ts";
import { addressOf } from "../store/pages.ts";
import { activeTab } from "../store/tabs.ts";
import { serverSettings } from "../sign-in/session.ts";
import { addCurrentStatement } from "./add-panel.ts";
import { importDashboard } from "./files.ts";
import { empty, isChanged, NEW, openNew } from "./open.ts";
import { sharedText } from "./shared-text.ts";

export function DashboardsPage({ id }: { id?: string }) {
  return (
    <main class="page" aria-label="Dashboards">
      {id === undefined ? <List /> : <DashboardView key={id} id={id} />}
    </main>
  );
}

function List() {
  const [found, setFound] = useState<readonly DashboardHead[]>();
  const [error, setError] = useState("");
  useEffect(() => {
    listDashboards().then((answer) => {
      if ("error" in answer) setError(answer.error);
      else {
        setFound(answer.dashboards);
        setError("");
      }
    });
  }, [returns.value]);
  const hasUsers = serverSettings.value.isProtected;
  const isEmpty = found?.length === 0 && !isChanged(NEW);
  return (
    <section class="card facts" aria-label="Dashboards">
      <h2>Dashboards</h2>
      {error !== "" && <p class="empty" role="alert">The dashboards cannot be shown: {error}</p>}
      {found === undefined && error === "" && <p class="empty" role="status">Loading …</p>}
      {isEmpty && (
        <p class="empty">
          A dashboard shows charts, tables and numbers of several statements, with a common time range and variables.
          Begin with the statement that is in the editor ({activeTab.value.name}), or with an empty one.
        </p>
      )}
      <div class="tools">
        <button type="button" class={isEmpty ? "main" : ""} onClick={() => addCurrentStatement(undefined)}>
          Make one of the statement in the editor
        </button>
        <button type="button" onClick={() => openNew(empty())}>Empty dashboard</button>
        <button type="button" onClick={importDashboard}>Import a file</button>
      </div>
      {isChanged(NEW) && (
        <p class="empty">
          <a href={addressOf({ name: "dashboards", id: NEW })}>A new dashboard</a> is not saved yet.
        </p>
      )}
      {found !== undefined && found.length > 0 && (
        <ScrollTable
          label="Table of dashboards"
          columns={["Name", ...hasUsers ? ["Owner", "Shared with"] : [], "Last change"]}
        >
          {found.map(({ id, name, owner, sharedWith, changed, canEdit }) => (
            <tr key={id}>
              <td>
                <a href={addressOf({ name: "dashboards", id })}>{name}</a>
                {isChanged(id) && <small>not saved</small>}
              </td>
              {hasUsers && <td>{owner}</td>}
              {hasUsers && <td>{canEdit ? sharedText(sharedWith) : "you"}</td>}
              <td class="whole">{shownText(changed, "TIMESTAMP", zone.value).replace(/\.\d+/, "")}</td>
            </tr>
          ))}
        </ScrollTable>
      )}
    </section>
  );
}
