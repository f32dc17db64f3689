/**
 * UNION, EXCEPT and INTERSECT over more rows than the memory holds: both sides are divided on disk by the hashes of their rows. The
 * operator in memory may have output rows already. The partitions give the same rows in the same order, so these are left out.
 */
import type { SetNode } from "../../sql/plan.ts";
import type { Operator, QueryContext } from "../contract.ts";
import { runParts } from "./hash-parts.ts";
import { orApart } from "./or-apart.ts";
import type { SpilledRows } from "./spilled-rows.ts";

interface ApartSet {
  /** Divides each input; the rows' numbers are their last column. */
  divide(): SpilledRows[][];
  /** The set operation over such rows, by their other columns. */
  make(inputs: Operator[]): Operator;
}

/** `canRestart`: the inputs give the same rows again. */
export function spillingSet(
  plan: SetNode,
  canRestart: boolean,
  inMemory: Operator,
  apart: ApartSet,
  context: QueryContext,
): Operator {
  return orApart(
    inMemory,
    () => {
      const keys = plan.columns.map((_, c) => c), inputs = apart.divide();
      return runParts({
        inputs,
        keys: inputs.map(() => keys),
        make: apart.make,
        order: [{ column: keys.length, descending: false }],
        columnCount: keys.length,
        operator: plan.operator.split(" ")[0],
      }, context);
    },
    context,
    canRestart,
  );
}
