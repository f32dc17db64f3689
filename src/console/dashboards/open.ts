/** Open dashboards. Changes stay in the browser until they are saved, even over reloads. */
import { signal } from "@preact/signals";
import { type DashboardSave, readDashboard, saveDashboard } from "../server/dashboards.ts";
import { notify } from "../store/notices.ts";
import { openPage } from "../store/pages.ts";
import { savedOfUser } from "../store/saved.ts";
import { type Definition, definitionOf, EMPTY, type Panel, withPanel } from "./model.ts";

export interface Opened {
  /** Undefined if the server does not have it yet. */
  id?: string;
  version?: number;
  name: string;
  owner?: string;
  sharedWith: readonly string[];
  canEdit: boolean;
  definition: Definition;
}

/** The address of a dashboard that the server does not have yet. */
export const NEW = "new";

const isOpened = (value: unknown) => {
  const { name, sharedWith, definition } = (value ?? {}) as Partial<Opened>;
  return typeof name === "string" && Array.isArray(sharedWith) && typeof definitionOf(definition) === "object";
};

/** By id. */
const drafts = savedOfUser<Record<string, Opened>>(
  "dashboards",
  {},
  (value) => typeof value === "object" && Object.values(value as object).every(isOpened),
);
const stored = signal<Record<string, Opened | { error: string }>>({});

/** Undefined while it is loaded. */
export function openedOf(id: string): Opened | { error: string } | undefined {
  return drafts.value[id] ?? stored.value[id];
}

export const isChanged = (id: string): boolean => drafts.value[id] !== undefined;

export async function load(id: string): Promise<void> {
  if (id === NEW) {
    if (drafts.value[NEW] === undefined) stored.value = { ...stored.value, [NEW]: empty() };
    return;
  }
  const found = await readDashboard(id);
  if ("error" in found) {
    // The loaded dashboard stays while the server is away.
    if (found.status !== 0 || stored.value[id] === undefined) stored.value = { ...stored.value, [id]: found };
    return;
  }
  const definition = definitionOf(JSON.parse(found.definition));
  stored.value = {
    ...stored.value,
    [id]: typeof definition === "string"
      ? { error: `This dashboard cannot be read: ${definition}` }
      : { ...found, definition },
  };
}

export const empty = (): Opened => ({ name: "New dashboard", sharedWith: [], canEdit: true, definition: EMPTY });

export function change(id: string, changed: Partial<Opened>): void {
  const opened = openedOf(id);
  if (opened === undefined || "error" in opened) return;
  drafts.value = { ...drafts.value, [id]: { ...opened, ...changed } };
}

export function changeDefinition(id: string, make: (definition: Definition) => Definition): void {
  const opened = openedOf(id);
  if (opened !== undefined && !("error" in opened)) change(id, { definition: make(opened.definition) });
}

export function changePanel(id: string, panelId: number, changed: Partial<Panel>): void {
  changeDefinition(id, (definition) => ({
    ...definition,
    panels: definition.panels.map((panel) => panel.id === panelId ? { ...panel, ...changed } : panel),
  }));
}

/** Reverts to the dashboard in the server. */
export function discard(id: string): void {
  const { [id]: _, ...rest } = drafts.value;
  drafts.value = rest;
  if (id === NEW) openPage({ name: "dashboards" });
  else load(id);
}

/** Opens a new dashboard that is not saved yet. */
export function openNew(opened: Opened): void {
  drafts.value = { ...drafts.value, [NEW]: { ...opened, id: undefined, version: undefined, canEdit: true } };
  openPage({ name: "dashboards", id: NEW });
}

/** Adds the panel, to a new dashboard if `id` is undefined. */
export async function addPanel(id: string | undefined, panel: Omit<Panel, "id">, name: string): Promise<void> {
  if (id === undefined) {
    const draft = drafts.value[NEW] ?? { ...empty(), name };
    return openNew({ ...draft, definition: withPanel(draft.definition, panel) });
  }
  if (openedOf(id) === undefined) await load(id);
  changeDefinition(id, (definition) => withPanel(definition, panel));
  openPage({ name: "dashboards", id });
}

/** Returns the error if it could not be saved. */
export async function save(id: string): Promise<{ error: string; status: number } | undefined> {
  const opened = openedOf(id);
  if (opened === undefined || "error" in opened) return undefined;
  const { name, sharedWith, definition, version } = opened;
  const body: DashboardSave = { name, sharedWith, definition: JSON.stringify(definition) };
  const answer = await saveDashboard(id === NEW ? body : { ...body, id, version });
  if ("error" in answer) return answer;
  // Changes made while it was being saved stay for the next save.
  const later = drafts.value[id], isCurrent = later === opened;
  const { [id]: _, ...rest } = drafts.value;
  stored.value = { ...stored.value, [answer.id]: { ...answer, definition } };
  if (!isCurrent && later !== undefined) rest[answer.id] = { ...later, id: answer.id, version: answer.version };
  drafts.value = rest;
  if (id === NEW) openPage({ name: "dashboards", id: answer.id });
  notify(`${name} is saved.`);
}
