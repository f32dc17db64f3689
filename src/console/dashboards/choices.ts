/** The values that variables can have. Statements that find them are run with the rights of the viewer, one after the other. */
import { useEffect, useState } from "preact/hooks";
import { textOf } from "../results/cells.ts";
import { query, UNREACHABLE } from "../server/client.ts";
import { returns } from "../store/connection.ts";
import type { Variable } from "./model.ts";
import type { Range } from "./range.ts";
import { fullStatement } from "./statement.ts";

const CHOICES_MAX = 1000;

export interface ResolvedVariable extends Variable {
  /** Why there are no choices. */
  error?: string;
  isLoading?: boolean;
}

interface Found {
  choices?: string[];
  error?: string;
}

/** A statement may use the range and the variables before its own. */
export function useChoices(variables: readonly Variable[], range: Range): ResolvedVariable[] {
  const [found, setFound] = useState<Record<string, Found>>({});
  const resolved: ResolvedVariable[] = [];
  let missing: string | undefined;
  for (const one of variables) {
    const { text, error } = one.statement === undefined ? {} : textFor(one.statement, range, resolved);
    const known = error !== undefined ? { error } : text === undefined ? { choices: one.choices } : found[text];
    // Later ones may depend on this one.
    if (known === undefined) missing ??= text;
    resolved.push(missing === undefined ? withFirst({ ...one, ...known }) : { ...one, isLoading: true });
  }
  useEffect(() => {
    if (missing === undefined) return;
    const controller = new AbortController();
    query(missing, { readOnly: true, limit: CHOICES_MAX, signal: controller.signal }).then(({ rows, error }) => {
      // Asked again when the server is back.
      if (controller.signal.aborted || error?.message === UNREACHABLE) return;
      const choices = rows?.dataset.map(([first]) => textOf(first));
      setFound((before) => ({ ...before, [missing]: { choices, error: error?.message } }));
    });
    return () => controller.abort();
  }, [missing, returns.value]);
  return resolved;
}

function textFor(statement: string, range: Range, before: readonly Variable[]): { text?: string; error?: string } {
  try {
    return { text: fullStatement(statement, range, before) };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

/** Before anything was chosen, the first choice holds. */
function withFirst(variable: ResolvedVariable): ResolvedVariable {
  const { value, choices: [first] = [], hasAll, isList } = variable;
  return value === "" && !hasAll && !isList && first !== undefined ? { ...variable, value: first } : variable;
}
