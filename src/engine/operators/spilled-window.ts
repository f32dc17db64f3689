/**
 * Window functions over more rows than the memory holds: the rows are divided on disk by the hashes of the keys that all calls are
 * partitioned by, so that a partition of the calls is in one partition of the rows.
 */
import type { WindowNode } from "../../sql/plan.ts";
import type { Operator, QueryContext } from "../contract.ts";
import type { WindowWay } from "../physical/plan.ts";
import { columnAt, readingOf, typesOf, unnamedColumns } from "../physical/reading.ts";
import { dividedInput, runParts } from "./hash-parts.ts";
import { orApart } from "./or-apart.ts";
import { Pipeline } from "./pipeline.ts";

const OPERATOR = "window";

/**
 * `make` makes the operator over an input, `again` the input anew.
 */
export function spillingWindow(
  plan: WindowNode,
  { kind, commonKeys: keys }: WindowWay,
  inMemory: Operator,
  make: (plan: WindowNode, input: Operator) => Operator,
  again: () => Operator,
  context: QueryContext,
): Operator {
  return orApart(
    inMemory,
    () => {
      const input = again(), { length: inputCount } = input.columns;
      const columns = [...input.columns, ...keys.map(({ type }, k) => ({ name: `key ${k}`, type }))];
      const exprs = [...input.columns.map(({ type }, c) => columnAt(c, type)), ...keys];
      const withKeys = new Pipeline(
        { kind: "operator", input },
        { ...readingOf(input.columns), exprs, columns },
        context,
      );
      const keyColumns = keys.map((_, k) => inputCount + k),
        number = columns.length,
        results = plan.columns.slice(inputCount);
      return runParts({
        inputs: [dividedInput(withKeys, keyColumns, context, OPERATOR)],
        keys: [keyColumns],
        make: ([rows]) => {
          const over = make({ ...plan, columns: [...rows.columns, ...results] }, rows);
          const picked = [
            ...exprs.slice(0, inputCount),
            ...results.map(({ type }, k) => columnAt(number + 1 + k, type)),
            columnAt(number, "LONG"),
          ];
          const named = unnamedColumns(typesOf(picked));
          return new Pipeline(
            { kind: "operator", input: over },
            { ...readingOf(over.columns), exprs: picked, columns: named },
            context,
          );
        },
        order: [{ column: plan.columns.length, descending: false }],
        columnCount: plan.columns.length,
        operator: OPERATOR,
      }, context);
    },
    context,
    kind === "streaming",
  );
}
