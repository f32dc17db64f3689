/** The editor's tabs with names and texts, which survive reloads. */
import { computed, signal } from "@preact/signals";
import { openPage } from "./pages.ts";
import { savedOfUser } from "./saved.ts";

export interface Tab {
  id: number;
  name: string;
  text: string;
}

const FIRST_TEXT = `-- 100,000 demo trades in a Parquet file. Ctrl+Enter runs the statement at the cursor.
select symbol, count() trades, min(price) low, max(price) high
from read_parquet('trades.parquet')
order by trades desc;
`;

const isTab = (value: unknown) => {
  const { id, name, text } = value as Tab;
  return typeof id === "number" && typeof name === "string" && typeof text === "string";
};

export const tabs = savedOfUser<Tab[]>(
  "tabs",
  [{ id: 1, name: "Query 1", text: FIRST_TEXT }],
  (value) => Array.isArray(value) && value.length > 0 && value.every(isTab),
);
/** There is always a tab: see `closeTab()`. */
const firstTab = (): Tab => tabs.value[0]!;
const chosenId = savedOfUser<number>("tab", firstTab().id, (value) => typeof value === "number");
export const activeTab = computed(() => tabs.value.find(({ id }) => id === chosenId.value) ?? firstTab());
export const activeTabId = computed(() => activeTab.value.id);
/** Incremented when the page, not the user, has changed a text. The editor then shows the new text. */
export const replacedTexts = signal(0);

export function selectTab(id: number): void {
  chosenId.value = id;
}

export function openTab(text = "", name?: string): void {
  openPage({ name: "query" });
  const id = Math.max(...tabs.value.map((tab) => tab.id)) + 1;
  tabs.value = [...tabs.value, { id, name: name ?? `Query ${id}`, text }];
  chosenId.value = id;
}

/** Closes a tab. The last tab is emptied instead. */
export function closeTab(id: number): void {
  const index = tabs.value.findIndex((tab) => tab.id === id);
  const rest = tabs.value.filter((tab) => tab.id !== id), next = rest[index] ?? rest.at(-1);
  if (next === undefined) return replaceText(id, "");
  if (activeTab.value.id === id) chosenId.value = next.id;
  tabs.value = rest;
}

export function renameTab(id: number, name: string): void {
  if (name.trim() !== "") update(id, { name: name.trim() });
}

/** Stores the text that the user has typed. */
export function keepText(id: number, text: string): void {
  update(id, { text });
}

function replaceText(id: number, text: string): void {
  update(id, { text });
  replacedTexts.value++;
}

function update(id: number, change: Partial<Tab>): void {
  tabs.value = tabs.value.map((tab) => tab.id === id ? { ...tab, ...change } : tab);
}
