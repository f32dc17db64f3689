/** Chooses how window functions are computed: row by row as rows arrive, or over kept rows. */
import type { Expr, SortKey, WindowCall, WindowNode } from "../../sql/plan.ts";
import { layoutOf } from "../../types/mod.ts";
import { exprKey } from "../compiler/expression.ts";
import type { PlanFacts } from "./facts.ts";
import { hasVolatile } from "./functions.ts";
import type { StreamingCall, WindowWay } from "./plan.ts";
import { hashPartitions } from "./spill.ts";

/** Rows are output as they arrive if every call needs only earlier rows, in the order of arrival. */
export function windowWay(node: WindowNode, facts: Pick<PlanFacts, "spills" | "functions">): WindowWay {
  const inOrder = node.calls.map((call) => isInInputOrder(call.orderBy, node));
  const streaming = node.calls.map((call, k) => inOrder[k] ? streamingCall(call) : undefined);
  const commonKeys = commonKeysOf(node), spill = hashPartitions(commonKeys, facts);
  if (streaming.every((call) => call !== undefined)) {
    // Rows are output before the memory is short, so the input must give the same rows again.
    const canRestart = spill !== undefined && !hasVolatile(node, facts);
    return { kind: "streaming", calls: streaming, commonKeys, spill: canRestart ? spill : undefined };
  }
  const hasRanks = node.calls.some((call) => /rank/.test(call.function));
  const calls = node.calls.map((call, k) => ({
    isSorted: inOrder[k]!,
    hasPeers: !inOrder[k] || hasRanks,
    mergesStates: isExactSum(call),
  }));
  return { kind: "general", calls, commonKeys, spill };
}

/** The keys that all calls have in PARTITION BY. */
function commonKeysOf({ calls: [first, ...others] }: WindowNode): Expr[] {
  return (first?.partitionBy ?? []).filter((key) =>
    others.every((call) => call.partitionBy.some((other) => exprKey(other) === exprKey(key)))
  );
}

const SUMS = new Set(["sum", "ksum", "nsum", "avg"]);

/** Sums of DECIMALs and LONG256. Those of DOUBLEs are updated from frame to frame by the rows that enter and leave. */
function isExactSum({ function: id, type }: WindowCall): boolean {
  return SUMS.has(id.slice(0, id.indexOf("("))) && layoutOf(type) !== "f64";
}

/** True if the rows arrive in this order. */
function isInInputOrder(orderBy: readonly SortKey[], node: WindowNode): boolean {
  if (orderBy.length === 0) return true;
  const { timestamp, order } = node.input;
  if (orderBy.length > 1 || timestamp < 0 || order === "none") return false;
  const { expression, descending, nulls } = orderBy[0]!;
  return expression.kind === "column" && expression.index === timestamp && descending === (order === "desc") &&
    nulls === undefined;
}

/** How a call is computed from a small state for each partition; undefined if it needs more. */
function streamingCall(call: WindowCall): StreamingCall | undefined {
  switch (call.function.slice(0, call.function.indexOf("("))) {
    case "row_number":
      return layoutOf(call.type) === "i64" ? { kind: "row number" } : undefined;
    case "lag":
      return lag(call);
    case "first_value":
      return isRunning(call) && isPlain(call) && !seesAhead(call) ? { kind: "first value" } : undefined;
    case "last_value":
      return isRunning(call) && isPlain(call) ? { kind: "last value" } : undefined;
    case "count":
      if (!isRunning(call) || layoutOf(call.type) !== "i64" || call.args[0]?.kind === "constant") return undefined;
      return call.args.length === 0 ? { kind: "row number" } : { kind: "count" };
    case "sum":
    case "ksum":
      return isSummed(call) ? { kind: "sum" } : undefined;
    case "avg":
      return isSummed(call) ? { kind: "average" } : undefined;
  }
}

/** The frame is all rows up to the current one. */
function isRunning({ frame: { start, end, excludeCurrentRow } }: WindowCall): boolean {
  return start === undefined && end === 0n && !excludeCurrentRow;
}

/** Over the whole input, first_value() IGNORE NULLS also gives rows before the first value that value. */
export function seesAhead(call: WindowCall): boolean {
  return call.ignoreNulls && call.partitionBy.length === 0 && isRunning(call);
}

/** 32-bit or 64-bit values that need no conversion. */
function isPlain({ args: [arg], type }: WindowCall): boolean {
  if (arg === undefined || arg.kind === "constant") return false;
  const layout = layoutOf(arg.type);
  return layout === layoutOf(type) && ["i32", "i64", "f32", "f64"].includes(layout);
}

function isSummed(call: WindowCall): boolean {
  const { args, type } = call, [arg] = args;
  return isRunning(call) && args.length === 1 && layoutOf(type) === "f64" && arg !== undefined &&
    arg.kind !== "constant" &&
    ["i8", "i16", "i32", "i64", "f32", "f64"].includes(layoutOf(arg.type));
}

/** The last values of each partition are kept in a ring of at most this size. */
const OFFSET_MAX = 256;

function lag(call: WindowCall): StreamingCall | undefined {
  const [, offset, otherwise] = call.args;
  if (call.ignoreNulls || !isPlain(call)) return undefined;
  if (otherwise !== undefined && !(otherwise.kind === "constant" && otherwise.value === null)) return undefined;
  if (offset === undefined) return { kind: "lag", offset: 1 };
  if (offset.kind !== "constant" || offset.value === null) return undefined;
  const rows = Number(offset.value);
  return rows >= 1 && rows <= OFFSET_MAX ? { kind: "lag", offset: rows } : undefined;
}
