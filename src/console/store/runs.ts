/** Executed statements, by tab. */
import { computed, effect, signal } from "@preact/signals";
import type { Outcome, Rows } from "../server/client.ts";
import { type Progress, release, runStatement } from "../server/results.ts";
import { isSigningOut, user } from "../sign-in/session.ts";
import { addToHistory } from "./history.ts";
import { keepRuns, takeRuns } from "./kept-runs.ts";
import type { Run } from "./run.ts";
import { activeTab, activeTabId, tabs } from "./tabs.ts";
import { refreshSchema } from "./schema.ts";

/** The statements of the last run of each tab. */
const byTab = signal<ReadonlyMap<number, readonly Run[]>>(new Map());
const chosen = signal<ReadonlyMap<number, number>>(new Map());

const NONE: readonly Run[] = [];
export const runs = computed(() => byTab.value.get(activeTabId.value) ?? NONE);
export const chosenRun = computed(() => {
  const id = chosen.value.get(activeTabId.value);
  return runs.value.find((run) => run.id === id) ?? runs.value.at(-1);
});
export const isRunning = computed(() => runs.value.some(({ outcome }) => outcome === undefined));

const controllers = new Map<number, AbortController>();
let lastId = 0;

export function chooseRun(id: number): void {
  chosen.value = new Map(chosen.value).set(activeTab.value.id, id);
}

/** Runs statements one after the other, until one fails. */
export async function runAll(statements: readonly { text: string; start: number; end: number }[]): Promise<void> {
  const tab = activeTab.value.id;
  if (isRunning.value || statements.length === 0) return;
  const controller = new AbortController();
  controllers.set(tab, controller);
  let all: Run[] = statements.map(({ text, start, end }) => {
    const id = ++lastId;
    return { id, key: id, statement: text, start, end };
  });
  const show = (next: Run[]) => {
    all = next;
    setRuns(tab, all);
  };
  show(all);
  for (const { id, statement } of all) {
    chosen.value = new Map(chosen.value).set(tab, id);
    const change = (news: Partial<Run>) => show(all.map((run) => run.id === id ? { ...run, ...news } : run));
    const outcome = await outcomeOf(statement, controller.signal, (rowsSoFar, progress) => {
      change({ rowsSoFar, progress });
    });
    addToHistory(statement, outcome);
    change({ outcome, rowsSoFar: undefined, progress: undefined });
    if (outcome.error !== undefined) break;
  }
  show(all.filter(({ outcome }) => outcome !== undefined));
  controllers.delete(tab);
  if (all.some(({ outcome }) => outcome?.rows === undefined && outcome?.error === undefined)) refreshSchema();
}

/** Runs the chosen statement again. Its rows are replaced when the new ones have arrived. */
export async function rerun(): Promise<void> {
  const run = chosenRun.value, tab = activeTab.value.id;
  if (run === undefined || isRunning.value) return;
  const outcome = await outcomeOf(run.statement, new AbortController().signal);
  const list = byTab.value.get(tab) ?? [];
  if (!list.includes(run)) return releaseAll([{ outcome }]);
  setRuns(tab, list.map((one) => one === run ? { ...run, outcome } : one));
}

/** Also removes the results of the previous runs from the server. */
function setRuns(tab: number, next: readonly Run[]): void {
  const before = byTab.value.get(tab) ?? [], kept = new Set(spoolsOf(next));
  byTab.value = new Map(byTab.value).set(tab, next);
  for (const id of spoolsOf(before)) if (!kept.has(id)) release(id);
}

const spoolsOf = (list: readonly Pick<Run, "outcome" | "rowsSoFar">[]) =>
  list.flatMap(({ outcome, rowsSoFar }) =>
    outcome?.rows?.spool?.id ?? outcome?.rows?.keptId ?? rowsSoFar?.spool?.id ?? []
  );

const releaseAll = (list: readonly Pick<Run, "outcome" | "rowsSoFar">[]) => spoolsOf(list).forEach(release);

// Those of tabs that are closed.
effect(() => {
  const open = new Set(tabs.value.map(({ id }) => id));
  for (const [tab, list] of byTab.peek()) {
    if (open.has(tab)) continue;
    controllers.get(tab)?.abort();
    releaseAll(list);
    const rest = new Map(byTab.peek());
    rest.delete(tab);
    byTab.value = rest;
  }
});
// What is kept expires in the server if the page does not come back. What still runs is cancelled.
addEventListener("pagehide", (event) => {
  const lists = [...byTab.value.values()];
  if (isSigningOut()) return lists.forEach(releaseAll);
  if (user.value === undefined) return;
  keepRuns({ user: user.value.name, runs: [...byTab.value], chosen: [...chosen.value] });
  // A page that the browser keeps may go on.
  if (!event.persisted) lists.forEach((list) => releaseAll(list.filter(({ outcome }) => outcome === undefined)));
});

/** The results of the page before a reload. */
export function restoreRuns(): void {
  const kept = user.value === undefined ? undefined : takeRuns(user.value.name);
  if (kept === undefined) return;
  const open = new Set(tabs.value.map(({ id }) => id));
  const runs = kept.runs.filter(([tab]) => open.has(tab));
  for (const [, list] of runs) for (const { id, key } of list) lastId = Math.max(lastId, id, key);
  byTab.value = new Map(runs);
  chosen.value = new Map(kept.chosen);
}

async function outcomeOf(
  statement: string,
  signal: AbortSignal,
  onUpdate?: (rows: Rows | undefined, progress: Progress | undefined) => void,
): Promise<Outcome> {
  const started = performance.now();
  try {
    return await runStatement(statement, { signal, isKept: true, onUpdate });
  } catch (error) {
    if (!signal.aborted) throw error;
    return { error: { message: "Cancelled." }, durationMs: performance.now() - started };
  }
}

/** Cancels the statement in the server. */
export function cancel(): void {
  controllers.get(activeTab.value.id)?.abort();
}
