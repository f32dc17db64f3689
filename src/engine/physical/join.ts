/** Chooses how joins find matches. */
import type { Expr, JoinNode, TimeJoinNode } from "../../sql/plan.ts";
import { layoutOf } from "../../types/mod.ts";
import { formOf, mapColumns } from "../compiler/expression.ts";
import type { PlanFacts } from "./facts.ts";
import { hasVolatile, isVolatile } from "./functions.ts";
import type {
  JoinKeyKind,
  PhysicalJoin,
  PhysicalLastRows,
  PhysicalPlan,
  PhysicalSplice,
  PhysicalTimeJoin,
  Reading,
} from "./plan.ts";
import {
  batchesOf,
  type Below,
  columnAt,
  expectedRows,
  fusedWith,
  identity,
  isByMorsels,
  isByMorselsOfScan,
  isRepeatable,
  over,
} from "./reading.ts";
import { hashPartitions } from "./spill.ts";
import { JOIN_SLOTS, JOIN_SLOTS_PER_ROW, TRANSLATED_ENTRIES, TRANSLATED_ENTRIES_PER_ROW } from "./thresholds.ts";

export function chooseJoin(
  id: number,
  node: JoinNode,
  left: PhysicalPlan,
  right: PhysicalPlan,
  facts: PlanFacts,
): PhysicalJoin {
  const below = leftSide(id, node, left, facts), { reading } = below;
  const leftCount = left.node.columns.length, ofRight = rightColumns(reading, right);
  const residual = node.residual &&
    mapColumns(node.residual, (index) => index < leftCount ? reading.exprs[index]! : ofRight[index - leftCount]!);
  const isInner = node.type === "inner" || node.type === "cross";
  return {
    operator: "join",
    way: "pairs",
    id,
    node,
    ...sidesOf(node, below, right, facts),
    residual: isInner ? undefined : residual,
    over: {
      predicates: isInner && residual !== undefined ? [residual] : [],
      exprs: [...reading.exprs, ...ofRight],
    },
    byMorsels: isByMorsels(reading, below.inputs),
    spill: hashPartitions(node.rightKeys, facts),
    fused: below.fused,
    inputs: [...below.inputs, right],
  };
}

/** The right side's columns, behind those of the left side's base. */
function rightColumns({ baseColumns }: Reading, right: PhysicalPlan): Expr[] {
  return right.node.columns.map(({ type }, k) => columnAt(baseColumns.length + k, type));
}

/** What both kinds of joins say of their sides. */
function sidesOf(
  node: JoinNode | TimeJoinNode,
  { reading, inputs }: Below,
  right: PhysicalPlan,
  facts: PlanFacts,
): Pick<PhysicalJoin, "left" | "columns" | "leftKeys" | "keyKinds" | "expectedLeftRows"> {
  const leftKeys = node.leftKeys.map((key) => over(reading, key));
  return {
    left: reading,
    columns: [...reading.baseColumns, ...right.node.columns],
    leftKeys,
    keyKinds: leftKeys.map((key, k) => kindOf(key, node.rightKeys[k]!)),
    expectedLeftRows: expectedRows(reading, inputs, facts),
  };
}

export function chooseTimeJoin(
  id: number,
  node: TimeJoinNode,
  left: PhysicalPlan,
  right: PhysicalPlan,
  facts: PlanFacts,
): PhysicalLastRows | PhysicalSplice | PhysicalTimeJoin {
  const inputs = [left, right], fused: never[] = [];
  const spill = hashPartitions(node.leftKeys, facts), canRestart = spill !== undefined && !hasVolatile(node, facts);
  if (node.type === "splice") {
    const columns = [...left.node.columns, ...right.node.columns], over = { predicates: [], exprs: identity(columns) };
    const rows = { columns, over, byMorsels: true, expectedLeftRows: 0 };
    return { operator: "join", way: "splice", id, node, ...rows, spill, canRestart, fused, inputs };
  }
  const below = leftSide(id, node, left, facts), { reading } = below;
  const leftTime = over(reading, node.leftTime), { rightTime } = node;
  // Times of different units are converted.
  if (!isByMorselsOfScan(reading, below.inputs) || leftTime.kind !== "column" || rightTime.kind !== "column") {
    return { operator: "time join", id, node, spill, canRestart, fused, inputs };
  }
  return {
    operator: "join",
    way: "last rows",
    id,
    node,
    ...sidesOf(node, below, right, facts),
    over: { predicates: [], exprs: [...reading.exprs, ...rightColumns(reading, right)] },
    byMorsels: true,
    leftTime: leftTime.index,
    rightTime: rightTime.index,
    spill,
    canRestart,
    fused: below.fused,
    inputs: [...below.inputs, right],
  };
}

/** The left side; its base may be read directly. */
function leftSide(id: number, node: JoinNode | TimeJoinNode, left: PhysicalPlan, facts: PlanFacts): Below {
  const below = fusedWith(left, id), { reading } = below, { base } = reading;
  const isReadable = isRepeatable(reading, facts) &&
    ![...reading.predicates, ...node.leftKeys].some((expr) => isVolatile(expr, facts));
  // Unmatched right rows have no left columns to compute expressions from.
  const isPlain = reading.exprs.every((expr) => expr.kind === "column");
  if (
    !isReadable || (base.kind === "scan" && (base.node.reverse || base.node.rowId)) ||
    (!isPlain && (node.type === "right" || node.type === "full"))
  ) return batchesOf(left);
  return below;
}

function kindOf(left: Expr, right: Expr): JoinKeyKind {
  const layout = layoutOf(left.type), other = layoutOf(right.type);
  if (layout === "symbol" && other === "symbol" && left.kind === "column") return "symbol";
  if (layout === "symbol" || other === "symbol" || layout === "text") return "text";
  return formOf(left.type) === undefined ? "wide" : "value";
}

/** Entries of a side's dictionary, and its rows. */
export interface SymbolSide {
  entries: number;
  rows: number;
}

/**
 * True if a pair of symbols is compared by codes of the right dictionary. `left`: undefined if it is only known with
 * the rows.
 */
export function isByCodes(left: SymbolSide | undefined, right: SymbolSide, isSame: boolean): boolean {
  const isWorth = ({ entries, rows }: SymbolSide) =>
    entries <= Math.max(TRANSLATED_ENTRIES, TRANSLATED_ENTRIES_PER_ROW * rows);
  return isSame || (isWorth(right) && (left === undefined || isWorth(left)));
}

/** Slots of a dense index; the last key varies fastest. */
export interface DenseSlots {
  low: bigint;
  count: bigint;
  step: number;
}

/**
 * A dense index over the right side's keys; undefined if they are not integers of a small range, so that they are
 * hashed.
 */
export function denseSlots(
  ranges: readonly ({ low: bigint; high: bigint } | undefined)[],
  rowCount: number,
): { keys: DenseSlots[]; slots: number } | undefined {
  const keys: DenseSlots[] = [];
  let slots = 1;
  for (let k = ranges.length - 1; k >= 0; k--) {
    const range = ranges[k];
    if (range === undefined) return undefined;
    const count = range.high < range.low ? 0n : range.high - range.low + 1n;
    keys[k] = { low: range.low, count, step: slots };
    slots *= Number(count) + 2;
    if (slots > Math.max(JOIN_SLOTS, JOIN_SLOTS_PER_ROW * rowCount)) return undefined;
  }
  return { keys, slots };
}
