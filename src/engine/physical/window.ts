/** Chooses how window functions are computed: row by row as rows arrive, or over kept rows; and in which steps they continue on disk. */
import { type SortKey, UNFRAMED, type WindowCall, type WindowNode } from "../../sql/plan.ts";
import { layoutOf } from "../../types/mod.ts";
import { exprKey } from "../compiler/expression.ts";
import type { PlanFacts } from "./facts.ts";
import { hasVolatile } from "./functions.ts";
import type { OrderedCall, OrderedStep, SpillWay, StreamingCall, WindowStep, WindowWay } from "./plan.ts";

/** Rows are output as they arrive if every call needs only earlier rows, in the order of arrival. */
export function windowWay(node: WindowNode, facts: Pick<PlanFacts, "spills" | "functions">): WindowWay {
  const inOrder = node.calls.map((call) => isInInputOrder(call.orderBy, node));
  const streaming = node.calls.map((call, k) => inOrder[k] ? streamingCall(call) : undefined);
  const steps = facts.spills ? stepsOf(node, inOrder) : [], spill = spillOf(steps);
  if (streaming.every((call) => call !== undefined)) {
    // One partition needs little memory. Rows are output before it is short, so the input must give the same rows again.
    const canRestart = spill === "hash partitions" && !hasVolatile(node, facts);
    return { kind: "streaming", calls: streaming, steps, spill: canRestart ? spill : undefined };
  }
  const hasRanks = node.calls.some((call) => /rank/.test(call.function));
  const calls = node.calls.map((call, k) => ({
    isSorted: inOrder[k]!,
    hasPeers: !inOrder[k] || hasRanks,
    mergesStates: isExactSum(call),
  }));
  return { kind: "general", calls, steps, spill };
}

/** None if a call needs all rows in memory. */
function stepsOf({ calls }: WindowNode, inOrder: readonly boolean[]): WindowStep[] {
  const steps: WindowStep[] = [], ordered = new Map<string, OrderedStep>();
  for (const [k, call] of calls.entries()) {
    if (call.partitionBy.length > 0) {
      addToPartitions(steps, k, call);
      continue;
    }
    const way = orderedCall(call), near = way === undefined ? nearRows(call) : undefined;
    if (way === undefined && near === undefined) return [];
    const sortBy = inOrder[k] ? [] : call.orderBy, name = orderKey(sortBy);
    let step = ordered.get(name);
    if (step === undefined) {
      step = { kind: "in order", sortBy, near: { calls: [], before: 0, after: 0 }, calls: [], ways: [], isWhole: [] };
      ordered.set(name, step);
      steps.push(step);
    }
    if (near !== undefined) {
      step.near.calls.push(k);
      step.near.before = Math.max(step.near.before, near.before);
      step.near.after = Math.max(step.near.after, near.after);
    } else if (way !== undefined) {
      step.calls.push(k);
      step.ways.push(way);
      step.isWhole.push(isWhole(call) && usesFrame(call));
    }
  }
  return steps;
}

/** Adds the call to a step with a common key, or makes one for it. */
function addToPartitions(steps: WindowStep[], k: number, { partitionBy }: WindowCall): void {
  for (const step of steps) {
    if (step.kind !== "hash partitions") continue;
    const keys = step.keys.filter((key) => partitionBy.some((other) => exprKey(other) === exprKey(key)));
    if (keys.length === 0) continue;
    step.keys = keys;
    step.calls.push(k);
    return;
  }
  steps.push({ kind: "hash partitions", calls: [k], keys: partitionBy });
}

function orderKey(sortBy: readonly SortKey[]): string {
  return sortBy.map(({ expression, descending, nulls }) => `${exprKey(expression)} ${descending} ${nulls}`).join();
}

function spillOf(steps: readonly WindowStep[]): SpillWay | undefined {
  const isDivided = steps.some(({ kind }) => kind === "hash partitions");
  const isSorted = steps.some((step) => step.kind === "in order" && step.sortBy.length > 0);
  if (isDivided) return isSorted ? "hash partitions and sorted runs" : "hash partitions";
  return isSorted ? "sorted runs" : steps.length > 0 ? "rows in order" : undefined;
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

export function usesFrame({ function: id }: WindowCall): boolean {
  return !UNFRAMED.has(id.slice(0, id.indexOf("(")));
}

/** The frame is the whole partition. */
function isWhole({ frame: { start, end, excludeCurrentRow } }: WindowCall): boolean {
  return start === undefined && end === undefined && !excludeCurrentRow;
}

/** How a call is computed over rows in its order, all of one partition; undefined if it needs more than a small state. */
function orderedCall(call: WindowCall): OrderedCall | undefined {
  // Once all rows are read, the result of the last one is that of the whole.
  const running = isWhole(call) ? { ...call, frame: { ...call.frame, end: 0n } } : call;
  switch (call.function.slice(0, call.function.indexOf("("))) {
    case "rank":
      return layoutOf(call.type) === "i64" ? { kind: "rank" } : undefined;
    case "dense_rank":
      return layoutOf(call.type) === "i64" ? { kind: "dense rank" } : undefined;
    case "min":
      return isRunning(running) && isPlain(call) ? { kind: "least" } : undefined;
    case "max":
      return isRunning(running) && isPlain(call) ? { kind: "greatest" } : undefined;
    case "first_value":
      // Over a running frame, the first value is not known until it comes.
      return seesAhead(call)
        ? undefined
        : isWhole(call) && isPlain(call)
        ? { kind: "first value" }
        : streamingCall(call);
    case "sum":
    case "ksum":
      return streamingCall(running) ?? movingCall(call, "moving sum");
    case "avg":
      return streamingCall(running) ?? movingCall(call, "moving average");
    default:
      return streamingCall(running);
  }
}

/** Frames of at most this many rows are kept. */
const FRAME_ROWS_MAX = 1 << 16;

function movingCall(call: WindowCall, kind: "moving sum" | "moving average"): OrderedCall | undefined {
  const { unit, start, end, excludeCurrentRow } = call.frame;
  if (unit !== "rows" || start === undefined || end === undefined || excludeCurrentRow || !hasSummedValue(call)) {
    return undefined;
  }
  if (start > end || end > 0n || -start >= FRAME_ROWS_MAX) return undefined;
  return { kind, first: Number(-start), last: Number(-end) };
}

const NEAR_ROWS_MAX = 1 << 14;

/** The rows that a call needs before and after the current one; undefined if these are too many, or its result depends on others. */
function nearRows(call: WindowCall): { before: number; after: number } | undefined {
  const name = call.function.slice(0, call.function.indexOf("("));
  const { unit, start, end } = call.frame;
  switch (name) {
    case "lag":
    case "lead": {
      const offset = call.args[1] ?? { kind: "constant", value: 1n };
      if (call.ignoreNulls || offset.kind !== "constant") return undefined;
      const rows = Number(offset.value ?? 1n);
      if (!Number.isInteger(rows) || rows < 0 || rows > NEAR_ROWS_MAX) return undefined;
      return name === "lag" ? { before: rows, after: 0 } : { before: 0, after: rows };
    }
    case "min":
    case "max":
    case "count":
    case "first_value":
    case "last_value":
      break;
    default:
      return undefined;
  }
  if (unit !== "rows" || start === undefined || end === undefined) return undefined;
  const before = Math.max(0, -Number(start)), after = Math.max(0, Number(end));
  return before + after <= NEAR_ROWS_MAX ? { before, after } : undefined;
}

/** 32-bit or 64-bit values that need no conversion. */
function isPlain({ args: [arg], type }: WindowCall): boolean {
  if (arg === undefined || arg.kind === "constant") return false;
  const layout = layoutOf(arg.type);
  return layout === layoutOf(type) && ["i32", "i64", "f32", "f64"].includes(layout);
}

function isSummed(call: WindowCall): boolean {
  return isRunning(call) && hasSummedValue(call);
}

/** Its values are added as doubles. */
function hasSummedValue({ args, type }: WindowCall): boolean {
  const [arg] = args;
  return args.length === 1 && layoutOf(type) === "f64" && arg !== undefined &&
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
