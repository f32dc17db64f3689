/**
 * Window functions: calls with OVER, named windows, frames. A call over the results of other ones is of a later layer than these, which
 * has its own node in the plan.
 */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { Frame, FrameBound, FunctionCall, Name, Window } from "../ast.ts";
import { type Expr, type Plan, type SortKey, UNFRAMED, type WindowCall, type WindowFrame } from "../plan.ts";
import { resolveOverload } from "./calls.ts";
import { typeMismatch } from "./context.ts";
import { fold } from "./convert.ts";
import { wordDuration } from "./durations.ts";
import { NO_CALLS_OF_ROWS, type Scope, type WindowSink } from "./expression-binder.ts";
import type { Expressions } from "./expressions.ts";
import { rewrite, walk } from "./plans.ts";
import { displayName, isInteger, isTime } from "./types.ts";
import { sameName } from "../../types/names.ts";

interface ResolvedWindow {
  partitionBy: Window["partitionBy"];
  orderBy: Window["orderBy"];
  frame?: Frame;
}

const NULL_SKIPPING = new Set(["lag", "lead", "first_value", "last_value"]);
/** The result has the argument's type, except that INT and SHORT become LONG, and FLOAT becomes DOUBLE. */
const KEEPING = new Set(["lag", "lead", "first_value", "last_value", "nth_value", "min", "max"]);

export class WindowCollector implements WindowSink {
  readonly calls: WindowCall[] = [];
  /** For each call, the number of layers before its own. */
  private readonly layers: number[] = [];
  /** For each call, the ordinal of its column among those of all calls. Known from `plan()` on. */
  private readonly ordinals: number[] = [];
  /** Index of the designated timestamp in the input, or -1. RANGE frames need it. */
  timestamp = -1;

  constructor(private readonly expressions: Expressions, private readonly named: { name: Name; window: Window }[]) {
    const seen = new Set<string>();
    for (const { name } of named) {
      const key = name.text.toLowerCase();
      if (seen.has(key)) throw new SqlError(`WINDOW has ${name.text} twice`, name.at);
      seen.add(key);
    }
  }

  add(call: FunctionCall, scope: Scope): Expr {
    const name = call.name.toLowerCase();
    const over = call.over!;
    const window = "reference" in over
      ? this.named_(over.reference, this.named.length)
      : this.resolve(over, this.named.length);
    const inner: Scope = { ...scope, ...NO_CALLS_OF_ROWS, windows: this, isWindow: true };
    const partitionBy = window.partitionBy.map((e) =>
      this.expressions.settle(this.expressions.bind(e, inner), "STRING")
    );
    const orderBy = window.orderBy.map((item): SortKey => this.expressions.sortKey(item, inner));
    if (call.distinct) throw notSupported("DISTINCT in a window function", call.at);
    const star = call.args.length === 1 && call.args[0]!.kind === "star";
    const args = star ? [] : this.expressions.args(call, inner);
    if ((name === "lag" || name === "lead") && args.length > 3) {
      throw new SqlError(`${call.name} expects at most three arguments`, call.args[3]!.at, SQLSTATE.undefinedFunction);
    }
    const takesOffset = name === "lag" || name === "lead";
    if (takesOffset && args[1] !== undefined && args[1].kind !== "parameter") {
      const offset = fold(args[1], this.expressions.binding);
      if (offset === undefined) throw typeMismatch("the offset must be a constant", call.args[1]!.at);
    }
    if (takesOffset && args[2] !== undefined) refuseDefault(args[0]!, args[2], call.args[2]!.at);
    const resolved = resolveOverload(this.expressions, name, this.widened(name, args, call), call.at, "function");
    if (takesOffset) this.checkOffset(resolved.args[1], call);
    if (call.ignoreNulls && !NULL_SKIPPING.has(name)) {
      throw new SqlError(
        `${call.name} does not support IGNORE NULLS`,
        call.nullsAt ?? call.at,
      );
    }
    if (name === "avg" && resolved.isWindow) this.checkExponential(call, window, orderBy);
    const frame = UNFRAMED.has(name) ? wholeFrame(orderBy.length > 0) : this.frame(window.frame, orderBy, scope);
    const index = this.calls.push({
      function: resolved.id,
      args: resolved.args,
      ignoreNulls: call.ignoreNulls,
      partitionBy,
      orderBy,
      frame,
      type: resolved.type,
      at: call.at,
    }) - 1;
    this.layers.push(this.layerOver([...resolved.args, ...partitionBy, ...orderBy.map((key) => key.expression)]));
    return { kind: "placeholder", of: "window", index, type: resolved.type };
  }

  /** Window sums are DOUBLE, and small integers are widened to LONG. */
  private widened(name: string, args: Expr[], call: FunctionCall): Expr[] {
    const [first, ...rest] = args;
    if (first === undefined) return args;
    const cast = (type: string): Expr[] => [this.expressions.cast(first, type, call.args[0]!.at), ...rest];
    const isAdded = isInteger(first.type) || isTime(first.type) || ["FLOAT", "NULL"].includes(first.type);
    if (["sum", "avg", "ksum"].includes(name) && isAdded) return cast("DOUBLE");
    if (KEEPING.has(name) && ["BYTE", "SHORT", "INT"].includes(first.type)) return cast("LONG");
    if (KEEPING.has(name) && first.type === "FLOAT") return cast("DOUBLE");
    return args;
  }

  /** An exponential average needs ORDER BY and covers all previous rows. */
  private checkExponential(call: FunctionCall, window: ResolvedWindow, orderBy: SortKey[]): void {
    if (orderBy.length === 0) throw new SqlError("an exponential average needs ORDER BY", call.at, SQLSTATE.grouping);
    const { frame } = window;
    if (frame === undefined) return;
    const isWhole = frame.start.kind === "unbounded preceding" && frame.end.kind === "current row" &&
      frame.exclude !== "current row";
    if (!isWhole) {
      const message = "an exponential average is over all rows so far: it takes no other frame";
      throw new SqlError(message, call.at, SQLSTATE.grouping);
    }
  }

  private checkOffset(offset: Expr | undefined, call: FunctionCall): void {
    if (offset === undefined) return;
    const at = call.args[1]!.at;
    const value = fold(offset, this.expressions.binding);
    if (value === undefined && offset.kind === "parameter") return;
    if (value === undefined || value.value === null) throw typeMismatch("the offset must be a constant", at);
    if (BigInt(value.value as number | bigint) < 0n) {
      throw new SqlError("the offset must not be negative", at, SQLSTATE.invalidParameter);
    }
  }

  /** Resolves a named window. It may only refer to earlier ones. */
  private named_(reference: Name, before: number): ResolvedWindow {
    for (let i = before - 1; i >= 0; i--) {
      const { name, window } = this.named[i]!;
      if (sameName(name.text, reference.text)) return this.resolve(window, i);
    }
    throw new SqlError(`there is no window ${reference.text}`, reference.at, SQLSTATE.undefinedColumn);
  }

  private resolve(window: Window, before: number): ResolvedWindow {
    if (window.base === undefined) return window;
    const base = this.named_(window.base, before);
    if (window.partitionBy.length > 0) {
      throw new SqlError(
        "a window that extends another one cannot have PARTITION BY",
        window.partitionAt ?? window.base.at,
      );
    }
    return {
      partitionBy: base.partitionBy,
      orderBy: window.orderBy.length > 0 ? window.orderBy : base.orderBy,
      frame: window.frame ?? base.frame,
    };
  }

  private frame(frame: Frame | undefined, orderBy: SortKey[], scope: Scope): WindowFrame {
    if (frame === undefined) return wholeFrame(orderBy.length > 0);
    if (frame.unit === "groups") throw notSupported("a GROUPS frame", frame.at);
    if (frame.unit === "cumulative") {
      if (orderBy.length === 0) throw new SqlError("CUMULATIVE needs ORDER BY", frame.at);
      return { unit: "rows", end: 0n, excludeCurrentRow: false };
    }
    if (frame.exclude === "group" || frame.exclude === "ties") {
      throw notSupported(`EXCLUDE ${frame.exclude.toUpperCase()}`, frame.at);
    }
    const key = orderBy[0]?.expression;
    let timeType: string | undefined, byTime = false;
    if (frame.unit === "range") {
      byTime = orderBy.length === 1 && key?.kind === "column" && key.index === this.timestamp;
      const bounded = [frame.start, frame.end].some((bound) =>
        bound.kind === "preceding" || bound.kind === "following"
      );
      if (bounded && !byTime) {
        throw new SqlError(
          "a RANGE frame needs ORDER BY the designated timestamp",
          key === undefined ? frame.at : this.expressions.binding.positionOf(key),
          SQLSTATE.grouping,
        );
      }
      timeType = key?.type;
      // Without offsets, a range differs from rows only by the peers of the current row.
      if (!bounded && orderBy.length === 0) return { unit: "rows", excludeCurrentRow: frame.exclude === "current row" };
    }
    const start = this.bound(frame.start, timeType, scope);
    const end = this.bound(frame.end, timeType, scope);
    if (frame.start.kind === "unbounded following") {
      throw new SqlError(
        "a frame cannot start with UNBOUNDED FOLLOWING",
        frame.start.wordAt,
      );
    }
    if (frame.end.kind === "unbounded preceding") {
      throw new SqlError("a frame cannot end with UNBOUNDED PRECEDING", frame.end.at);
    }
    // 0 FOLLOWING is the current row.
    if (frame.start.kind === "following" && start !== 0n) {
      throw notSupported("a frame that starts FOLLOWING", frame.start.wordAt);
    }
    if (frame.end.kind === "following" && end !== 0n) {
      throw notSupported("a frame that ends FOLLOWING", frame.end.wordAt);
    }
    if (start !== undefined && end !== undefined && start > end) {
      if (frame.start.kind === "preceding") return NO_ROWS;
      throw new SqlError(
        "the frame ends before it starts",
        "wordAt" in frame.end ? frame.end.wordAt : frame.end.at,
        SQLSTATE.invalidParameter,
      );
    }
    if (frame.end.kind === "unbounded following" && frame.start.kind !== "unbounded preceding") {
      throw notSupported(
        "a frame that ends with UNBOUNDED FOLLOWING and does not start with UNBOUNDED PRECEDING",
        frame.end.wordAt,
      );
    }
    if (frame.exclude === "current row" && byTime && end === 0n) {
      // A range ends before the time of the current row, as with 1 PRECEDING: rows of the same time are excluded, too.
      return start === 0n ? NO_ROWS : { unit: "range", start, end: -1n, excludeCurrentRow: false };
    }
    return { unit: frame.unit, start, end, excludeCurrentRow: frame.exclude === "current row" };
  }

  /** Offset from the current row; undefined means unbounded. */
  private bound(bound: FrameBound, timeType: string | undefined, scope: Scope): bigint | undefined {
    if (bound.kind === "current row") return 0n;
    if (bound.kind !== "preceding" && bound.kind !== "following") return undefined;
    const value = fold(
      this.expressions.bind(bound.offset, { columns: [], names: scope.names }),
      this.expressions.binding,
    );
    const text = value?.value;
    if (text === undefined || text === null || typeof text === "boolean" || !/^\d+$/.test(String(text))) {
      throw typeMismatch("the offset of a frame must be a whole number that is not negative", bound.offset.at);
    }
    let offset = BigInt(text);
    if (bound.unit !== undefined) {
      const unit = timeType === undefined ? undefined : wordDuration(bound.unit.text, timeType);
      if (unit === undefined) throw new SqlError(`invalid unit ${bound.unit.text} in a frame`, bound.unit.at);
      offset *= unit;
    }
    return bound.kind === "preceding" ? -offset : offset;
  }

  /** The first layer that has the results of all calls in `expressions`. */
  private layerOver(expressions: Expr[]): number {
    let layer = 0;
    for (const expression of expressions) {
      walk(expression, (e) => {
        if (e.kind === "placeholder" && e.of === "window") layer = Math.max(layer, this.layers[e.index]! + 1);
      });
    }
    return layer;
  }

  plan(input: Plan): Plan {
    const first = input.columns.length;
    const place = (expr: Expr): Expr => this.replace(expr, first);
    const byLayer = Map.groupBy(this.calls.keys(), (index) => this.layers[index]!);
    const ordered = [...byLayer].toSorted(([a], [b]) => a - b).map(([, indices]) => indices);
    ordered.flat().forEach((index, ordinal) => this.ordinals[index] = ordinal);
    let plan = input;
    for (const indices of ordered) {
      const calls = indices.map((index): WindowCall => {
        const call = this.calls[index]!;
        return {
          ...call,
          args: call.args.map(place),
          partitionBy: call.partitionBy.map(place),
          orderBy: call.orderBy.map((key) => ({ ...key, expression: place(key.expression) })),
        };
      });
      const columns = [...plan.columns, ...calls.map((call) => ({ name: call.function, type: call.type }))];
      plan = { node: "window", input: plan, calls, columns, timestamp: input.timestamp, order: input.order };
    }
    return plan;
  }

  /** Replaces placeholders of window calls by columns of `plan()`, whose input has `first` columns. */
  replace(expr: Expr, first: number): Expr {
    return rewrite(
      expr,
      (e) =>
        e.kind === "placeholder" && e.of === "window"
          ? { kind: "column", index: first + this.ordinals[e.index]!, type: e.type }
          : undefined,
    );
  }
}

/** Refuses a default that would widen the value's type: a fraction for an integer or a time. */
function refuseDefault(value: Expr, otherwise: Expr, at: number): void {
  const isWhole = isInteger(value.type) || isTime(value.type);
  if (!isWhole || (otherwise.type !== "FLOAT" && otherwise.type !== "DOUBLE")) return;
  throw typeMismatch(`the default has type ${displayName(otherwise.type)}: expected ${displayName(value.type)}`, at);
}

/** A frame without rows: QuestDB accepts ends that precede the start. */
const NO_ROWS: WindowFrame = { unit: "rows", start: -1n, end: -2n, excludeCurrentRow: false };

/** The default frame: up to the current row if ordered, else the whole partition. */
export function wholeFrame(ordered: boolean): WindowFrame {
  return ordered ? { unit: "rows", end: 0n, excludeCurrentRow: false } : { unit: "rows", excludeCurrentRow: false };
}
