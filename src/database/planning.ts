/**
 * Compiles a text to a statement that is ready to run: on the main thread, or for long ones in the planner's thread.
 */
import type { Prepared } from "../api.ts";
import { asClientFault } from "../errors.ts";
import type { Requirement } from "../requirement.ts";
import {
  bind,
  type BindContext,
  callsServer,
  categoryOf,
  completePlan,
  kindOf,
  optimizeStatement,
  parse,
  type StatementRows,
  usesClock,
} from "../sql/mod.ts";
import { type BoundStatement, inputsOf, type Plan } from "../sql/plan.ts";
import type { TableSchema } from "../storage/mod.ts";
import type { Value } from "../types/mod.ts";

export const VIEWS_TABLE = "_views";
/** Tables that only the server changes. */
export const OWN_TABLES: ReadonlySet<string> = new Set([VIEWS_TABLE]);

/** Why rows cannot be written into a table that only the server changes. Undefined for other tables, and those that do not exist. */
export function serverTableFault(name: string, schema: TableSchema | undefined): string | undefined {
  if (OWN_TABLES.has(name.toLowerCase())) return `${name} is a table of the server`;
  if (schema?.materialized !== undefined) return `${name} is a materialized view, which only the server changes`;
  return undefined;
}

/** The facts of a statement besides its text. */
export interface Planned<P = Plan> {
  bound: BoundStatement<P>;
  /** Undefined if it returns no rows. */
  rows?: StatementRows;
  parameters: string[];
  /** The permissions that the statement requires. Checked at each execution. */
  requires: Requirement[];
  /** See `Bound`. */
  parameterArrays: (string | undefined)[];
  category: Prepared["category"];
  /** Notices to the client, in addition to the result. */
  notices: string[];
  hasMetadata: boolean;
  /** Calls functions that the session implements. */
  asksServer: boolean;
  /** Depends on the clock or on files at the time of binding, so it must be bound again for each run. */
  boundAnew: boolean;
  /** See `Bound`. */
  timeMicros?: bigint;
  /** Must be bound again with the values of its parameters. */
  boundByValues: boolean;
}

/** @throws {SqlError} for mistakes in the text. If it is too long, throws the error of `context.effort`. */
export function planText(text: string, context: BindContext): Planned {
  try {
    return plan(text, context);
  } catch (error) {
    throw asClientFault(error);
  }
}

function plan(text: string, context: BindContext): Planned {
  const tree = parse(text, context.effort);
  context.poll?.();
  const bindings = bind(tree, context);
  const { statement, parameterTypes: parameters, requires, boundByValues, boundAnew, notices } = bindings;
  // With parameters, the rules run once the values are known.
  const bound = parameters.length > 0 ? statement : optimizeStatement(statement);
  return {
    bound,
    rows: kindOf(bound).rows?.(bound),
    parameters,
    requires,
    parameterArrays: bindings.parameterArrays,
    category: categoryOf(bound),
    notices,
    hasMetadata: plansOf(bound).some(hasMetadata),
    asksServer: plansOf(bound).some(callsServer),
    boundAnew,
    timeMicros: bindings.timeMicros,
    boundByValues,
  };
}

/** The values of one run that its plan needs. */
export interface RunValues {
  values: readonly Value[];
  nowMicros: () => bigint;
  user: string;
}

/** The plan with the values of its parameters and the time of the run. */
export function planOfRun(plan: Plan, { parameters }: Pick<Planned, "parameters">, run: RunValues): Plan {
  // now() is constant during a run. Its value is known here, so that scans are pruned by it.
  if (usesClock(plan)) return completePlan(plan, run.values, { nowMicros: run.nowMicros(), user: run.user });
  return run.values.length > 0 || parameters.length > 0 ? completePlan(plan, run.values, {}) : plan;
}

/** The plan of the statement, or of the statement that it explains. */
export function plansOf<P>(bound: BoundStatement<P>): P[] {
  if (bound.statement !== undefined) return plansOf(bound.statement);
  return bound.plan === undefined ? [] : [bound.plan];
}

function hasMetadata(plan: Plan): boolean {
  return plan.node === "metadata" || inputsOf(plan).some(hasMetadata);
}
