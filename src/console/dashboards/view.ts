/**
 * The view of a dashboard: range, refresh and values of variables, which any viewer may choose without changing the
 * dashboard.
 */
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { Definition, Variable } from "./model.ts";
import type { Range } from "./range.ts";

export interface View {
  range: Range;
  refreshSeconds: number;
  /** By name. */
  values: Record<string, string>;
}

/** By id. Kept while another page is shown. */
const views = signal<Record<string, Partial<View>>>({});

export function useView(id: string, { range, refreshSeconds, variables }: Definition) {
  const [tick, setTick] = useState(0);
  const chosen = views.value[id] ?? {};
  const view: View = {
    range: chosen.range ?? range,
    refreshSeconds: chosen.refreshSeconds ?? refreshSeconds,
    values: { ...Object.fromEntries(variables.map(({ name, value }) => [name, value])), ...chosen.values },
  };
  const choose = (change: Partial<View>) => {
    views.value = { ...views.value, [id]: { ...views.value[id], ...change } };
  };
  return { view, choose, tick, refresh: () => setTick((before) => before + 1) };
}

export const withValues = (variables: readonly Variable[], values: Record<string, string>): Variable[] =>
  variables.map((one) => ({ ...one, value: values[one.name] ?? one.value }));
