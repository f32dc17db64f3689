/** All user actions with their names and keys. Buttons, the command palette and the keyboard share this list. */
import { ask } from "../app/dialogs.tsx";
import { editor } from "../editor/editor.tsx";
import { chooseFile } from "../import/import-panel.tsx";
import { copyText } from "../store/clipboard.ts";
import { cancel } from "../store/runs.ts";
import { activeTab, closeTab, openTab, renameTab, selectTab, tabs } from "../store/tabs.ts";
import { isTreeOpen, openPanel } from "../store/panels.ts";
import { openPage, page } from "../store/pages.ts";
import { toggleTheme } from "../store/theme.ts";
import { createTable } from "../schema/create-table.tsx";
import { may, mayImport } from "../sign-in/permissions.ts";
import { serverSettings, signOut } from "../sign-in/session.ts";
import { linkTo } from "./link.ts";

export interface Action {
  id: string;
  name: string;
  /** Keys to display, and to handle unless the editor does: "Mod+K", where Mod is Ctrl or Command. */
  keys?: string;
  isOfEditor?: boolean;
  /** Absent if the action is always offered. */
  isOffered?(): boolean;
  run(): void;
}

export const ACTIONS: readonly Action[] = [
  {
    id: "run",
    name: "Run the statement at the cursor",
    keys: "Mod+Enter",
    isOfEditor: true,
    isOffered: isOnQueries,
    run: () => editor.run(),
  },
  {
    id: "run-all",
    name: "Run all statements",
    keys: "Mod+Shift+Enter",
    isOfEditor: true,
    isOffered: isOnQueries,
    run: () => editor.runAll(),
  },
  { id: "cancel", name: "Cancel running statements", keys: "Mod+Escape", isOffered: isOnQueries, run: cancel },
  { id: "palette", name: "Show all commands", keys: "Mod+K", run: () => openPanel("palette") },
  { id: "format", name: "Format the text", keys: "Alt+Shift+F", isOffered: isOnQueries, run: () => editor.format() },
  { id: "history", name: "Search the history", keys: "Mod+H", run: () => openPanel("history") },
  { id: "new-tab", name: "New tab", keys: "Alt+T", run: () => openTab() },
  {
    id: "close-tab",
    name: "Close the tab",
    keys: "Alt+W",
    isOffered: isOnQueries,
    run: () => closeTab(activeTab.value.id),
  },
  { id: "rename-tab", name: "Rename the tab", run: renameActiveTab },
  { id: "next-tab", name: "Next tab", keys: "Alt+PageDown", isOffered: isOnQueries, run: () => moveTab(1) },
  { id: "previous-tab", name: "Previous tab", keys: "Alt+PageUp", isOffered: isOnQueries, run: () => moveTab(-1) },
  { id: "link", name: "Copy a link to this text", keys: "Alt+L", isOffered: isOnQueries, run: copyLink },
  {
    id: "tree",
    name: "Show or hide the tables",
    keys: "Mod+B",
    isOffered: isOnQueries,
    run: () => isTreeOpen.value = !isTreeOpen.value,
  },
  { id: "create-table", name: "Create a table", isOffered: () => may("CREATE TABLE"), run: createTable },
  { id: "import", name: "Import a CSV or Parquet file", isOffered: mayImport, run: chooseFile },
  { id: "query-page", name: "Go to the queries", keys: "Alt+1", run: () => openPage({ name: "query" }) },
  { id: "dashboards", name: "Go to the dashboards", keys: "Alt+2", run: () => openPage({ name: "dashboards" }) },
  { id: "server", name: "Go to the server page", keys: "Alt+3", run: () => openPage({ name: "server" }) },
  { id: "theme", name: "Switch between light and dark", run: toggleTheme },
  { id: "account", name: "Show my account and permissions", isOffered: hasUsers, run: () => openPanel("account") },
  { id: "sign-out", name: "Sign out", isOffered: hasUsers, run: signOut },
  { id: "focus", name: "Go to the editor", keys: "Alt+E", isOffered: isOnQueries, run: editor.focus },
  { id: "focus-results", name: "Go to the results", keys: "Alt+R", isOffered: isOnQueries, run: focusResults },
  { id: "focus-tables", name: "Go to the tables", keys: "Alt+S", isOffered: isOnQueries, run: focusTables },
];

function isOnQueries(): boolean {
  return page.value.name === "query";
}

function hasUsers(): boolean {
  return serverSettings.value.isProtected;
}

export function action(id: string): Action {
  return ACTIONS.find((one) => one.id === id)!;
}

const isMac = /Mac/.test(navigator.platform);

/** The keys with the labels of the user's keyboard. */
export function shownKeys(keys: string): string {
  return keys.replace("Mod", isMac ? "⌘" : "Ctrl").replaceAll("+", " + ");
}

/** Handles the keys of all actions. */
export function listenForKeys(): () => void {
  const byKeys = new Map(ACTIONS.filter(({ keys, isOfEditor }) => keys && !isOfEditor).map((one) => [one.keys!, one]));
  const onKey = (event: KeyboardEvent) => {
    const found = byKeys.get(keysOf(event));
    if (found === undefined || found.isOffered?.() === false) return;
    event.preventDefault();
    found.run();
  };
  addEventListener("keydown", onKey, { capture: true });
  return () => removeEventListener("keydown", onKey, { capture: true });
}

function keysOf(event: KeyboardEvent): string {
  const mod = isMac ? event.metaKey : event.ctrlKey;
  const key = event.key.length === 1 ? event.code.replace(/^(Key|Digit)/, "") : event.key;
  return [...mod ? ["Mod"] : [], ...event.altKey ? ["Alt"] : [], ...event.shiftKey ? ["Shift"] : [], key].join("+");
}

function focusResults(): void {
  const results = document.querySelector(".results")!;
  const main = results.querySelector<HTMLElement>(".grid, .chart, .plan");
  (main ?? results.querySelector<HTMLElement>("button"))?.focus();
}

function focusTables(): void {
  isTreeOpen.value = true;
  // The tree is drawn before the next frame.
  requestAnimationFrame(() => document.querySelector<HTMLElement>(".tree input")?.focus());
}

function moveTab(by: number): void {
  const { value: all } = tabs, next = all.indexOf(activeTab.value) + by;
  const tab = all.at(next % all.length);
  if (tab !== undefined) selectTab(tab.id);
}

async function renameActiveTab(): Promise<void> {
  const { id, name } = activeTab.value;
  const answer = await ask({
    title: "Rename the tab",
    fields: [{ name: "name", label: "Name", value: name }],
    confirm: "Rename",
  });
  if (answer !== undefined) renameTab(id, answer.name);
}

function copyLink(): Promise<void> {
  return copyText(linkTo(activeTab.value.text), "The link");
}
