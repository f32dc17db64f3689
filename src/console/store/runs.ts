/** Executed statements, by tab. */
import { computed, signal } from "@preact/signals";
import { type Outcome, runStatement } from "../server/client.ts";
import { addToHistory } from "./history.ts";
import { activeTab } from "./tabs.ts";
import { refreshSchema } from "./schema.ts";

export interface Run {
  id: number;
  /** That of the statement in its place: a run again keeps the grid with its scroll position and sorting. */
  key: number;
  statement: string;
  /** UTF-16 units from the start of the tab's text at that time. */
  start: number;
  end: number;
  /** Undefined: waiting or running. */
  outcome?: Outcome;
}

/** The statements of the last run of each tab. */
const byTab = signal<ReadonlyMap<number, readonly Run[]>>(new Map());
const chosen = signal<ReadonlyMap<number, number>>(new Map());

export const runs = computed(() => byTab.value.get(activeTab.value.id) ?? []);
export const chosenRun = computed(() => {
  const id = chosen.value.get(activeTab.value.id);
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
    byTab.value = new Map(byTab.value).set(tab, all);
  };
  show(all);
  for (const { id, statement } of all) {
    chosen.value = new Map(chosen.value).set(tab, id);
    const outcome = await outcomeOf(statement, controller.signal);
    addToHistory(statement, outcome);
    show(all.map((run) => run.id === id ? { ...run, outcome } : run));
    if (outcome.error !== undefined) break;
  }
  show(all.filter(({ outcome }) => outcome !== undefined));
  controllers.delete(tab);
  if (all.some(({ outcome }) => outcome?.rows === undefined && outcome?.error === undefined)) refreshSchema();
}

/** Runs the chosen statement again; its rows are replaced when the new ones have come. */
export async function rerun(): Promise<void> {
  const run = chosenRun.value, tab = activeTab.value.id;
  if (run === undefined || isRunning.value) return;
  const outcome = await outcomeOf(run.statement, new AbortController().signal);
  const list = byTab.value.get(tab) ?? [];
  if (!list.includes(run)) return;
  byTab.value = new Map(byTab.value).set(tab, list.map((one) => one === run ? { ...run, outcome } : one));
}

async function outcomeOf(statement: string, signal: AbortSignal): Promise<Outcome> {
  const started = performance.now();
  try {
    return await runStatement(statement, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    return { error: { message: "Cancelled." }, durationMs: performance.now() - started };
  }
}

/** Aborts the request; the server then cancels the statement. */
export function cancel(): void {
  controllers.get(activeTab.value.id)?.abort();
}
