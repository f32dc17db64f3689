/** One dashboard: its range, variables and panels. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { ask } from "../app/dialogs.tsx";
import { MenuButton, type MenuItem } from "../app/menu.tsx";
import { removeDashboard } from "../server/dashboards.ts";
import { repeat } from "../server-page/polled.ts";
import { serverSettings } from "../sign-in/session.ts";
import { returns } from "../store/connection.ts";
import { notify } from "../store/notices.ts";
import { addressOf, openPage } from "../store/pages.ts";
import { useChoices } from "./choices.ts";
import { exportDashboard } from "./files.ts";
import type { Panel } from "./model.ts";
import { withPanel } from "./model.ts";
import {
  change,
  changeDefinition,
  changePanel,
  discard,
  isChanged,
  load,
  NEW,
  type Opened,
  openedOf,
  openNew,
  save,
} from "./open.ts";
import { PanelDialog } from "./panel-dialog.tsx";
import { PanelView } from "./panel-view.tsx";
import { RangeChoice } from "./range-choice.tsx";
import { sharedText } from "./shared-text.ts";
import { useView, withValues } from "./view.ts";
import { VariablesBar } from "./variables-bar.tsx";
import { VariablesDialog } from "./variables-dialog.tsx";

export function DashboardView({ id }: { id: string }) {
  const opened = openedOf(id);
  useEffect(() => {
    load(id);
  }, [id, returns.value]);
  if (opened === undefined) return <p class="empty" role="status">Loading …</p>;
  if ("error" in opened) {
    return (
      <p class="empty" role="alert">
        {opened.error} <a href={addressOf({ name: "dashboards" })}>All dashboards</a>
      </p>
    );
  }
  return <Board id={id} opened={opened} />;
}

const REFRESH_SECONDS = [0, 5, 10, 30, 60, 300];
const NEW_PANEL: Omit<Panel, "id"> = {
  title: "Panel",
  statement: "",
  kind: "chart",
  width: 6,
  height: "medium",
  unit: "plain",
};

function Board({ id, opened }: { id: string; opened: Opened }) {
  const { definition, canEdit, name } = opened;
  const { view, choose, tick, refresh } = useView(id, definition);
  const [edited, setEdited] = useState<Panel | "new">();
  const [editsVariables, setEditsVariables] = useState(false);
  const [refusal, setRefusal] = useState<{ error: string; status: number }>();
  const { refreshSeconds, range, values } = view;
  const key = JSON.stringify(values);
  const variables = useMemo(() => withValues(definition.variables, values), [definition.variables, key]);
  const resolved = useChoices(variables, range), resolvedKey = JSON.stringify(resolved);
  const shown = useMemo(() => resolved.some(({ isLoading }) => isLoading) ? undefined : resolved, [resolvedKey]);
  useEffect(() => {
    if (refreshSeconds === 0) return;
    let isFirst = true;
    return repeat(() => {
      if (!isFirst) refresh();
      isFirst = false;
      return Promise.resolve(refreshSeconds * 1000);
    });
  }, [refreshSeconds]);
  const saveAll = async () => {
    // The current choices become the defaults for other users.
    changeDefinition(id, (one) => ({ ...one, range, refreshSeconds, variables: withValues(one.variables, values) }));
    setRefusal(await save(id));
  };
  return (
    <>
      <div class="board-bar">
        <a href={addressOf({ name: "dashboards" })} aria-label="All dashboards" title="All dashboards">←</a>
        <h2>{name}</h2>
        {isChanged(id) && canEdit && <span class="unsaved" role="status">not saved</span>}
        {!canEdit && <span class="unsaved">by {opened.owner}</span>}
        <span class="space" />
        <RangeChoice range={range} onChange={(next) => choose({ range: next })} />
        <MenuButton
          text={refreshSeconds === 0 ? "Refresh" : `Every ${durationOf(refreshSeconds)}`}
          items={REFRESH_SECONDS.map((seconds) => ({
            name: seconds === 0 ? "By hand" : `Every ${durationOf(seconds)}`,
            isChosen: seconds === refreshSeconds,
            run: () => choose({ refreshSeconds: seconds }),
          }))}
        />
        <button type="button" onClick={refresh} aria-label="Refresh now" title="Refresh now">↻</button>
        {canEdit && <button type="button" onClick={() => setEdited("new")}>Add a panel</button>}
        <MenuButton
          text="More"
          items={actionsOf(id, opened, () => setEditsVariables(true))}
        />
        {canEdit && isChanged(id) && (
          <>
            <button type="button" onClick={() => confirmDiscard(id, name)}>Discard</button>
            <button type="button" class="main" onClick={saveAll}>Save</button>
          </>
        )}
      </div>
      {refusal !== undefined && (
        <p class="refusal" role="alert">
          Not saved: {refusal.error}. Your changes stay in this browser.
          {refusal.status === 409 && (
            <>
              <button type="button" onClick={() => openNew({ ...opened, name: `${name} (copy)`, sharedWith: [] })}>
                Keep mine as a copy
              </button>
              <button
                type="button"
                onClick={() => {
                  setRefusal(undefined);
                  discard(id);
                }}
              >
                Take the stored one
              </button>
            </>
          )}
        </p>
      )}
      <VariablesBar
        variables={resolved}
        onChange={(changed) => choose({ values: { ...values, ...changed } })}
      />
      {definition.panels.length === 0 && (
        <p class="empty">
          No panels yet. A panel is a statement, in which <code>@from</code>, <code>@to</code> and{" "}
          <code>@interval</code> stand for the time range:{" "}
          <code>… where ts between @from and @to sample by @interval</code>
        </p>
      )}
      <div class="board">
        {definition.panels.map((panel) => (
          <PanelView
            key={panel.id}
            panel={panel}
            range={range}
            variables={shown}
            tick={tick}
            onZoom={(next) => choose({ range: next })}
            actions={canEdit ? panelActions(id, opened, panel, () => setEdited(panel)) : []}
          />
        ))}
      </div>
      {edited !== undefined && (
        <PanelDialog
          panel={edited === "new" ? NEW_PANEL : edited}
          formKey={`${id}/${edited === "new" ? "new" : edited.id}`}
          onCancel={() => setEdited(undefined)}
          onDone={(panel) => {
            if (edited === "new") changeDefinition(id, (one) => withPanel(one, panel));
            else changePanel(id, edited.id, panel);
            setEdited(undefined);
          }}
        />
      )}
      {editsVariables && (
        <VariablesDialog
          variables={definition.variables}
          onCancel={() => setEditsVariables(false)}
          onDone={(next) => {
            changeDefinition(id, (one) => ({ ...one, variables: next }));
            choose({ values: {} });
            setEditsVariables(false);
          }}
        />
      )}
    </>
  );
}

const durationOf = (seconds: number) => seconds < 60 ? `${seconds} s` : `${seconds / 60} min`;

function actionsOf(id: string, opened: Opened, editVariables: () => void): MenuItem[] {
  const { name, canEdit } = opened;
  const always: MenuItem[] = [
    { name: "Export as a file", run: () => exportDashboard(opened) },
    { name: "Make a copy", run: () => openNew({ ...opened, name: `${name} (copy)`, sharedWith: [] }) },
  ];
  if (!canEdit) return always;
  return [
    { name: "Variables …", run: editVariables },
    { name: "Rename …", run: () => rename(id, name) },
    ...serverSettings.value.isProtected ? [{ name: "Share …", run: () => share(id, opened) }] : [],
    ...always,
    ...id === NEW ? [] : [{ name: "Delete …", run: () => remove(id, name) }],
  ];
}

function panelActions(id: string, { definition: { panels } }: Opened, panel: Panel, edit: () => void): MenuItem[] {
  const at = panels.findIndex((one) => one.id === panel.id);
  const move = (to: number) =>
    changeDefinition(id, (one) => {
      const rest = one.panels.filter((other) => other.id !== panel.id);
      return { ...one, panels: [...rest.slice(0, to), panel, ...rest.slice(to)] };
    });
  return [
    { name: "Edit …", run: edit },
    ...at > 0 ? [{ name: "Move before", run: () => move(at - 1) }] : [],
    ...at < panels.length - 1 ? [{ name: "Move behind", run: () => move(at + 1) }] : [],
    {
      name: "Remove",
      run: () =>
        changeDefinition(id, (one) => ({ ...one, panels: one.panels.filter((other) => other.id !== panel.id) })),
    },
  ];
}

async function rename(id: string, name: string): Promise<void> {
  const answer = await ask({
    title: "Rename the dashboard",
    fields: [{ name: "name", label: "Name", value: name }],
    confirm: "Rename",
  });
  if (answer !== undefined) change(id, { name: answer.name });
}

async function share(id: string, { name, sharedWith }: Opened): Promise<void> {
  const answer = await ask({
    title: `Share ${name}`,
    text: `Now shared with ${sharedText(sharedWith)}. Others see what their own permissions allow, and change nothing.`,
    fields: [
      {
        name: "with",
        label: "Share with",
        choices: ["nobody", "everybody", "users and groups"],
        value: choiceOf(sharedWith),
      },
    ],
    confirm: "Go on",
  });
  if (answer === undefined) return;
  if (answer.with !== "users and groups") return change(id, { sharedWith: answer.with === "nobody" ? [] : ["*"] });
  const named = await ask({
    title: `Share ${name} with users and groups`,
    fields: [{
      name: "names",
      label: "Names, with commas between them",
      value: sharedWith.filter((one) => one !== "*").join(", "),
    }],
    confirm: "Share",
  });
  if (named === undefined) return;
  change(id, {
    sharedWith: named.names.split(",").map((one) => one.trim()).filter((one) => one !== "" && one !== "*"),
  });
}

const choiceOf = (names: readonly string[]) =>
  names.length === 0 ? "nobody" : names.includes("*") ? "everybody" : "users and groups";

async function remove(id: string, name: string): Promise<void> {
  if (await ask({ title: `Delete ${name}?`, confirm: "Delete", isDangerous: true }) === undefined) return;
  const answer = await removeDashboard(id);
  if ("error" in answer) return notify(answer.error as string);
  openPage({ name: "dashboards" });
  discard(id);
}

async function confirmDiscard(id: string, name: string): Promise<void> {
  const answer = await ask({ title: `Discard your changes of ${name}?`, confirm: "Discard", isDangerous: true });
  if (answer !== undefined) discard(id);
}
