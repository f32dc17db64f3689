/** "Add to a dashboard": makes a panel from a statement. */
import { ask } from "../app/dialogs.tsx";
import { statementsOf } from "../editor/statements.ts";
import { listDashboards } from "../server/dashboards.ts";
import { notify } from "../store/notices.ts";
import { activeTab } from "../store/tabs.ts";
import type { Panel } from "./model.ts";
import { addPanel } from "./open.ts";

const NEW_NAME = "A new dashboard";

export async function addToDashboard(statement: string, kind: Panel["kind"]): Promise<void> {
  const answer = await listDashboards();
  if ("error" in answer) return notify(`The dashboards cannot be listed: ${answer.error}`);
  const own = answer.dashboards.filter(({ canEdit }) => canEdit);
  const names = own.map(({ name }, at) =>
    own.findIndex((other) => other.name === name) === at ? name : `${name} (${at + 1})`
  );
  const given = await ask({
    title: "Add to a dashboard",
    text: statement,
    fields: [
      { name: "dashboard", label: "Dashboard", choices: [NEW_NAME, ...names], value: names[0] ?? NEW_NAME },
      { name: "title", label: "Title of the panel", value: activeTab.value.name },
    ],
    confirm: "Add",
  });
  if (given === undefined) return;
  const id = given.dashboard === NEW_NAME ? undefined : own[names.indexOf(given.dashboard)]?.id;
  await addPanel(id, panelOf(statement, kind, given.title), given.title);
}

/** The first statement in the editor's tab. */
export function addCurrentStatement(id: string | undefined): void {
  const [first] = statementsOf(activeTab.value.text);
  const title = activeTab.value.name;
  if (first === undefined) return notify("There is no statement in the editor.");
  addPanel(id, panelOf(first.text, "chart", title), title);
}

const panelOf = (statement: string, kind: Panel["kind"], title: string): Omit<Panel, "id"> => ({
  title,
  statement,
  kind,
  width: 6,
  height: "medium",
  unit: "plain",
});
