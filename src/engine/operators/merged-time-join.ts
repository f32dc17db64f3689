/**
 * ASOF and LT joins that merge both sides in order. If there are too many keys for the memory, both sides are divided on disk by the hashes of
 * their keys, and each partition is joined alone, with its right rows in time order. Each left row is output once, so the outputs are merged by
 * the numbers of the left rows.
 */
import type { Expr, TimeJoinNode } from "../../sql/plan.ts";
import type { Operator, QueryContext } from "../contract.ts";
import type { PhysicalTimeJoin } from "../physical/plan.ts";
import { columnAt, unnamedColumns } from "../physical/reading.ts";
import { runParts } from "./hash-parts.ts";
import type { MergedRows } from "./merged-rows.ts";
import { orApart } from "./or-apart.ts";
import { AsofJoin, operatorOf } from "./time-join.ts";
import { dividedSides, narrowed, type Side } from "./time-sides.ts";

type Inputs = [left: Operator, right: Operator];

/** `node`: over the inputs. `from`: for each of its columns, the one of both inputs. `again` makes the inputs anew. */
export function mergedTimeJoin(
  node: TimeJoinNode,
  from: readonly number[],
  { spill, canRestart }: Pick<PhysicalTimeJoin, "spill" | "canRestart">,
  [left, right]: Inputs,
  again: () => Inputs,
  context: QueryContext,
): Operator {
  const inMemory = new AsofJoin(node, left, right, from, context, canRestart);
  return spill === undefined
    ? inMemory
    : orApart(inMemory, () => apart(node, from, again(), context), context, canRestart);
}

/** The join of both sides, each divided on disk. */
function apart(node: TimeJoinNode, from: readonly number[], [left, right]: Inputs, context: QueryContext): MergedRows {
  const operator = operatorOf(node), leftCount = left.columns.length;
  const ofLeft = from.filter((index) => index < leftCount), ofRight = from.filter((index) => index >= leftCount);
  const lefts = narrowed(left, ofLeft, node.leftTime, node.leftKeys, context);
  const rights = narrowed(right, ofRight.map((index) => index - leftCount), node.rightTime, node.rightKeys, context);
  // The needed columns come first on each side, and the rows' numbers last.
  const number = lefts.input.columns.length;
  const moved = from.map((index) => index < leftCount ? ofLeft.indexOf(index) : number + 1 + ofRight.indexOf(index));
  const columns = unnamedColumns([...node.columns.map(({ type }) => type), "LONG"]);
  const keysOf = ({ keys }: Side, exprs: readonly Expr[]) => exprs.map(({ type }, k) => columnAt(keys[k], type));
  const overParts: TimeJoinNode = {
    ...node,
    leftTime: columnAt(lefts.time, node.leftTime.type),
    leftKeys: keysOf(lefts, node.leftKeys),
    rightTime: columnAt(rights.time, node.rightTime.type),
    rightKeys: keysOf(rights, node.rightKeys),
    columns,
  };
  return runParts({
    inputs: dividedSides(lefts, rights, context, operator),
    keys: [[...lefts.keys], [...rights.keys]],
    make: ([l, r]) => new AsofJoin(overParts, l, r, [...moved, number], context),
    order: [{ column: from.length, descending: false }],
    columnCount: from.length,
    operator,
  }, context);
}
