/** A text as a statement that is ready to run: on main for most, in the planner's thread for long ones. */
import type { Prepared } from "../api.ts";
import { asClientFault } from "../errors.ts";
import type { Requirement } from "../requirement.ts";
import {
  bind,
  type BindContext,
  callsServer,
  categoryOf,
  inputsOf,
  kindOf,
  optimize,
  optimizeStatement,
  parse,
  type StatementRows,
  substituteParameters,
  usesClock,
} from "../sql/mod.ts";
import type { BoundStatement, Plan } from "../sql/plan.ts";
import type { Value } from "../types/mod.ts";

/** What is to be known of a statement besides its text. */
export interface Planned<P = Plan> {
  bound: BoundStatement<P>;
  /** Absent if it answers with no rows. */
  rows?: StatementRows;
  parameters: string[];
  /** What the statement requires of its user. Checked at each execution. */
  requires: Requirement[];
  /** See `Bound`. */
  parameterArrays: (string | undefined)[];
  category: Prepared["category"];
  /** What the client is told besides the answer. */
  notices: string[];
  hasMetadata: boolean;
  /** Calls functions that the session answers. */
  asksServer: boolean;
  /** Holds only for the moment at which it was bound: it looked at the clock or at files. */
  boundAnew: boolean;
  /** Is to be bound anew with the values of its parameters. */
  boundByValues: boolean;
}

/** @throws {SqlError} at what the text gets wrong; what `context.effort` says where it is too long. */
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
  const bindings = bind(tree, { ...context, text });
  const { statement, parameterTypes: parameters, requires, boundByValues, boundAnew, notices } = bindings;
  // With parameters, the rules run once their values are known.
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
    boundByValues,
  };
}

/** What one run of a statement adds to its plan. */
export interface RunValues {
  values: readonly Value[];
  nowMicros: () => bigint;
  user: string;
}

/** The plan with its parameters' values and the moment at which it runs. */
export function planOfRun(plan: Plan, { parameters }: Pick<Planned, "parameters">, run: RunValues): Plan {
  const hasParameters = run.values.length > 0 || parameters.length > 0;
  const known = hasParameters ? substituteParameters(plan, run.values) : plan;
  // now() stands still while the statement runs: planned with it, scans are pruned by it.
  if (usesClock(known)) return optimize(known, { nowMicros: run.nowMicros(), user: run.user });
  return hasParameters ? optimize(known) : known;
}

/** Its own plan, or that of the statement that it explains. */
export function plansOf<P>(bound: BoundStatement<P>): P[] {
  if (bound.statement !== undefined) return plansOf(bound.statement);
  return bound.plan === undefined ? [] : [bound.plan];
}

function hasMetadata(plan: Plan): boolean {
  return plan.node === "metadata" || inputsOf(plan).some(hasMetadata);
}
