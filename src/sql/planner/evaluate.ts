/**
 * The value of an expression of constants, worked out while a statement is bound or planned: the same entries that kernels
 * are made of, walked once over one row. Nothing that runs over rows comes here.
 */
import type { IrNode } from "../../engine/compiler/ir.ts";
import type { FunctionRegistry } from "../../engine/contract.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import {
  ARRAY_CONSTRUCTOR,
  type Layout,
  LAYOUT_WIDTH,
  layoutOf,
  NULL_I64,
  typeOf,
  type Value,
} from "../../types/mod.ts";
import type { BatchColumn, BatchOut, FunctionContext } from "../functions/entry.ts";
import { createRegistry, isWide } from "../functions/mod.ts";
import { wasmTypeOf } from "../functions/nodes.ts";
import type { Expr } from "../plan.ts";

export type Constant = Extract<Expr, { kind: "constant" }>;

const registry: FunctionRegistry = createRegistry();

export interface EvaluationContext {
  nowMicros?: bigint;
  user?: string;
}

/** undefined: it is not constant, or cannot be worked out here. Volatile functions never are; stable ones only with a clock. */
export function evaluate(expr: Expr, context: EvaluationContext = {}): Constant | undefined {
  try {
    return evaluateExpr(expr, context);
  } catch {
    // What fails now fails when it runs, with its position, unless a CASE keeps it from running.
    return undefined;
  }
}

function evaluateExpr(expr: Expr, context: EvaluationContext): Constant | undefined {
  switch (expr.kind) {
    case "constant":
      return expr;
    case "call": {
      const args: Constant[] = [];
      for (const arg of expr.args) {
        const value = evaluateExpr(arg, context);
        if (value === undefined) return undefined;
        args.push(value);
      }
      return call(expr, args, context);
    }
    case "case": {
      for (const branch of expr.branches) {
        const condition = evaluateExpr(branch.when, context);
        if (condition === undefined) return undefined;
        if (condition.value === true) return evaluateExpr(branch.then, context);
      }
      return evaluateExpr(expr.otherwise, context);
    }
    case "in": {
      const operand = evaluateExpr(expr.operand, context);
      if (operand === undefined) return undefined;
      return { kind: "constant", value: expr.values.includes(operand.value), type: "BOOLEAN" };
    }
    default:
      return undefined;
  }
}

function call(
  expr: Extract<Expr, { kind: "call" }>,
  args: Constant[],
  context: EvaluationContext,
): Constant | undefined {
  const { entry, types } = registry.resolve(expr.function);
  if (entry.volatility === "volatile" || (entry.volatility === "stable" && context.nowMicros === undefined)) {
    return undefined;
  }
  if (entry.aggregate !== undefined || entry.window || entry.table) return undefined;
  // 256 bits, bytes that are no text, signed 128 bits: only the engine holds them whole.
  if (isWide(expr.type) || types.some(isWide)) return undefined;
  const result = (value: Value): Constant => ({ kind: "constant", value, type: expr.type });
  if (entry.nulls === "propagate" && args.some((arg) => arg.value === null)) {
    return result(typeOf(expr.type).nullable ? null : expr.type === "BOOLEAN" ? false : 0);
  }
  const textBytes = args.reduce((sum, arg) => sum + (typeof arg.value === "string" ? arg.value.length * 3 : 0), 0);
  if (textBytes > 3 * TEXT_LENGTH_MAX) return undefined;
  const arena = new Arena(textBytes);
  if (entry.emit !== undefined) {
    const inputs = args.map((arg, i): IrNode => ({
      op: "literal",
      type: wasmTypeOf(types[i]) ?? "i32",
      args: [],
      value: Object(toRaw(arg.value, types[i], arena)),
    }));
    const raw = run(entry.emit(inputs, types), arena, new Map());
    return result(fromRaw(raw, expr.type, arena));
  }
  if (entry.batch !== undefined) {
    const columns = args.map((arg, i) => batchColumn(arg, types[i], arena));
    const out = batchOut(expr.type, arena);
    entry.batch(columns, out, 1, functionContext(expr.at, context, arena));
    return result(out.read());
  }
  return undefined;
}

function functionContext(at: number, context: EvaluationContext, arena: Arena): FunctionContext {
  return {
    heap: arena.heap(),
    memory: { need: short, keep: short },
    nowMicros: context.nowMicros ?? 0n,
    random: () => {
      throw new Error("no randomness while planning");
    },
    at,
    poll: () => {},
    user: context.user ?? "",
    rowOffset: 0,
    state: new Map(),
  };
}

/** Beside the texts: a row of each argument and of the result. */
const ARENA_BYTES = 4096;
/** Longer texts are left to run time, in which a worker can take its time. */
const TEXT_LENGTH_MAX = 16_384;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What is made while planning is short. */
function short(sizeBytes: number): void {
  if (sizeBytes > 4 * TEXT_LENGTH_MAX) throw new Error("too long to be worked out while planning");
}

/** The memory of one call: columns of one row and the texts they point to, at addresses as in the shared memory. */
class Arena {
  readonly buffer: ArrayBuffer;
  readonly bytes: Uint8Array;
  private used = 16;
  /** Of loops, within one another counted together. */
  steps = 0;

  constructor(textBytes: number) {
    this.buffer = new ArrayBuffer((ARENA_BYTES + textBytes + 15) & ~15);
    this.bytes = new Uint8Array(this.buffer);
  }

  /** Aligned for every layout. */
  reserve(sizeBytes: number): number {
    const address = (this.used + 15) & ~15;
    this.used = address + sizeBytes;
    if (this.used > this.bytes.length) throw new Error("too long to be worked out while planning");
    return address;
  }

  private add(bytes: Uint8Array): { address: number; length: number } {
    const address = this.reserve(bytes.length);
    this.bytes.set(bytes, address);
    return { address, length: bytes.length };
  }

  /** The views that functions have of the shared memory. */
  heap(): SharedHeap {
    const { buffer } = this;
    const views = {
      i8: new Int8Array(buffer),
      u8: this.bytes,
      i16: new Int16Array(buffer),
      u16: new Uint16Array(buffer),
      i32: new Int32Array(buffer),
      u32: new Uint32Array(buffer),
      f32: new Float32Array(buffer),
      f64: new Float64Array(buffer),
      i64: new BigInt64Array(buffer),
      u64: new BigUint64Array(buffer),
    };
    return views as unknown as SharedHeap;
  }

  pair(text: string | null): bigint {
    if (text === null) return -4294967296n;
    const { address, length } = this.add(encoder.encode(text));
    return BigInt(address) | (BigInt(length) << 32n);
  }

  view(pair: bigint): Uint8Array | undefined {
    if (pair < 0n) return undefined;
    const address = Number(pair & 0xffffffffn);
    return this.bytes.subarray(address, address + Number(pair >> 32n));
  }
}

type Raw = number | bigint;

function toRaw(value: Value, tag: string, arena: Arena): Raw {
  const type = typeOf(tag);
  if (type.layout === "text") return arena.pair(value as string | null);
  if (type.layout === "symbol") throw new Error("a symbol constant has no code");
  if (value === null) return type.nullValue;
  if (typeof value === "boolean") return value ? 1 : 0;
  if (tag === "CHAR") return (value as string).charCodeAt(0);
  if (tag === "IPv4") return (value as number) | 0;
  return value as Raw;
}

function fromRaw(raw: Raw, tag: string, arena: Arena): Value {
  const type = typeOf(tag);
  if (type.layout === "text") {
    const bytes = arena.view(raw as bigint);
    return bytes === undefined ? null : decoder.decode(bytes);
  }
  if (tag === "BOOLEAN") return raw !== 0;
  if (tag === "CHAR") return raw === 0 ? null : String.fromCharCode(raw as number);
  if (tag === "IPv4") return raw === 0 ? null : (raw as number) >>> 0;
  if (type.nullable && (Object.is(raw, type.nullValue) || (typeof raw === "number" && Number.isNaN(raw)))) return null;
  return raw;
}

function oneRow(
  layout: Layout,
  arena: Arena,
): { address: number; values: InstanceType<(typeof ARRAY_CONSTRUCTOR)[Layout]> } {
  const address = arena.reserve(LAYOUT_WIDTH[layout]);
  const view = ARRAY_CONSTRUCTOR[layout];
  return { address, values: new view(arena.buffer, address, LAYOUT_WIDTH[layout] / view.BYTES_PER_ELEMENT) };
}

function batchColumn(arg: Constant, type: string, arena: Arena): BatchColumn {
  const layout = layoutOf(type);
  const { address, values } = oneRow(layout, arena);
  let pair = -4294967296n;
  if (layout === "text") {
    pair = arena.pair(arg.value as string | null);
    values[0] = Number(pair & 0xffffffffn);
    values[1] = Number(pair >> 32n);
  } else if (layout === "i128") {
    const whole = arg.value as bigint | null;
    (values as BigInt64Array)[0] = whole === null ? NULL_I64 : BigInt.asIntN(64, whole);
    (values as BigInt64Array)[1] = whole === null ? NULL_I64 : BigInt.asIntN(64, whole >> 64n);
  } else {
    // deno-lint-ignore no-explicit-any
    (values as any)[0] = toRaw(arg.value, type, arena);
  }
  return {
    type,
    address,
    values,
    constant: arg.value,
    isConstant: true,
    bytes: () => arena.view(pair),
    text: () => (arg.value === null ? undefined : String(arg.value)),
  };
}

function batchOut(type: string, arena: Arena): BatchOut & { read(): Value } {
  const layout = layoutOf(type);
  const { address, values } = oneRow(layout, arena);
  let textValue: string | null = null;
  let made: Uint8Array | undefined;
  let isNull = false;
  return {
    type,
    address,
    values,
    setText(_row, value) {
      if (value !== undefined && value.length > TEXT_LENGTH_MAX) {
        throw new Error("too long to be worked out while planning");
      }
      textValue = value === undefined ? null : typeof value === "string" ? value : decoder.decode(value.slice());
    },
    setView(_row, address, length) {
      textValue = decoder.decode(arena.bytes.slice(address, address + length));
    },
    makeText(_row, length) {
      short(length);
      return made = new Uint8Array(length);
    },
    setNull() {
      isNull = true;
    },
    read() {
      if (made !== undefined) return decoder.decode(made);
      if (layout === "text") return textValue;
      if (isNull) return typeOf(type).nullable ? null : type === "BOOLEAN" ? false : 0;
      if (layout === "i128") {
        const [low, high] = values as BigInt64Array;
        return low === NULL_I64 && high === NULL_I64
          ? null
          : (BigInt.asUintN(64, high) << 64n) | BigInt.asUintN(64, low);
      }
      return fromRaw(values[0] as Raw, type, arena);
    },
  };
}

const bool = (condition: boolean): number => (condition ? 1 : 0);
const u32 = (x: Raw): number => (x as number) >>> 0;
const s64 = (x: bigint): bigint => BigInt.asIntN(64, x);
const u64 = (x: Raw): bigint => BigInt.asUintN(64, x as bigint);

function saturate(x: number, low: number, high: number): number {
  return Number.isNaN(x) ? 0 : Math.min(high, Math.max(low, Math.trunc(x)));
}

function saturateLong(x: number): bigint {
  if (Number.isNaN(x)) return 0n;
  if (x >= 9223372036854775808) return 9223372036854775807n;
  if (x <= -9223372036854775808) return NULL_LONG;
  return BigInt(Math.trunc(x));
}
const NULL_LONG = NULL_I64;

const scratch = new DataView(new ArrayBuffer(8));

function compareBytes(a: Uint8Array | undefined, b: Uint8Array | undefined): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? -1 : 1;
  for (let i = 0; i < a.length && i < b.length; i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}

/** One operation over worked-out operands; `if`, `bind` and `loop` are in `run`. */
function apply(node: IrNode, x: Raw[], arena: Arena): Raw {
  const [type, name] = node.op.split(".");
  const a = x[0], b = x[1];
  if (type === "text") {
    const left = arena.view(a as bigint), right = b === undefined ? undefined : arena.view(b as bigint);
    if (name === "eq") return bool(compareBytes(left, right) === 0);
    if (name === "compare") return compareBytes(left, right);
    throw new Error(`${node.op} is not worked out while planning`);
  }
  if (type === "f32" || type === "f64") {
    const round = type === "f32" ? Math.fround : (v: number) => v;
    const p = Number(a), q = Number(b);
    switch (name) {
      case "add":
        return round(p + q);
      case "sub":
        return round(p - q);
      case "mul":
        return round(p * q);
      case "div":
        return round(p / q);
      case "min":
        return Math.min(p, q);
      case "max":
        return Math.max(p, q);
      case "eq":
        return bool(p === q);
      case "ne":
        return bool(p !== q);
      case "lt":
        return bool(p < q);
      case "gt":
        return bool(p > q);
      case "le":
        return bool(p <= q);
      case "ge":
        return bool(p >= q);
      case "abs":
        return Math.abs(p);
      case "neg":
        return -p;
      case "ceil":
        return Math.ceil(p);
      case "floor":
        return Math.floor(p);
      case "trunc":
        return Math.trunc(p);
      case "nearest": {
        const nearest = Math.round(p);
        return Math.abs(p % 1) === 0.5 && nearest % 2 !== 0 ? nearest - 1 : nearest;
      }
      case "sqrt":
        return round(Math.sqrt(p));
      case "copysign":
        return Math.sign(q) < 0 || Object.is(q, -0) ? -Math.abs(p) : Math.abs(p);
      case "demote_f64":
        return Math.fround(p);
      case "promote_f32":
        return p;
      case "convert_i32_s":
      case "convert_i64_s":
        return round(p);
      case "convert_i32_u":
        return u32(a);
    }
  }
  if (type === "i32") {
    if (typeof a === "bigint" && name === "wrap_i64") return Number(BigInt.asIntN(32, a));
    const p = a as number, q = b as number;
    switch (name) {
      case "add":
        return (p + q) | 0;
      case "sub":
        return (p - q) | 0;
      case "mul":
        return Math.imul(p, q);
      case "div_s":
        return (p / q) | 0;
      case "rem_s":
        return (p % q) | 0;
      case "div_u":
        return (u32(p) / u32(q)) | 0;
      case "rem_u":
        return (u32(p) % u32(q)) | 0;
      case "and":
        return p & q;
      case "or":
        return p | q;
      case "xor":
        return p ^ q;
      case "shl":
        return p << q;
      case "shr_s":
        return p >> q;
      case "shr_u":
        return (p >>> q) | 0;
      case "eq":
        return bool(p === q);
      case "ne":
        return bool(p !== q);
      case "lt_s":
        return bool(p < q);
      case "gt_s":
        return bool(p > q);
      case "le_s":
        return bool(p <= q);
      case "ge_s":
        return bool(p >= q);
      case "lt_u":
        return bool(u32(p) < u32(q));
      case "gt_u":
        return bool(u32(p) > u32(q));
      case "le_u":
        return bool(u32(p) <= u32(q));
      case "ge_u":
        return bool(u32(p) >= u32(q));
      case "eqz":
        return bool(p === 0);
      case "clz":
        return Math.clz32(p);
      case "extend8_s":
        return (p << 24) >> 24;
      case "extend16_s":
        return (p << 16) >> 16;
      case "trunc_sat_f64_s":
      case "trunc_sat_f32_s":
        return saturate(p, -2147483648, 2147483647);
      case "reinterpret_f32":
        scratch.setFloat32(0, p);
        return scratch.getInt32(0);
      case "load8_u":
        return arena.bytes[p];
      case "load16_u":
        return arena.bytes[p] | (arena.bytes[p + 1] << 8);
    }
  }
  if (type === "i64") {
    if (name === "extend_i32_s") return BigInt(a);
    if (name === "extend_i32_u") return BigInt(u32(a));
    if (name === "trunc_sat_f64_s" || name === "trunc_sat_f32_s") return saturateLong(a as number);
    if (name === "reinterpret_f64") {
      scratch.setFloat64(0, a as number);
      return scratch.getBigInt64(0);
    }
    const p = a as bigint, q = b as bigint;
    switch (name) {
      case "add":
        return s64(p + q);
      case "sub":
        return s64(p - q);
      case "mul":
        return s64(p * q);
      case "div_s":
        return s64(p / q);
      case "rem_s":
        return s64(p % q);
      case "div_u":
        return s64(u64(p) / u64(q));
      case "rem_u":
        return s64(u64(p) % u64(q));
      case "and":
        return s64(p & q);
      case "or":
        return s64(p | q);
      case "xor":
        return s64(p ^ q);
      case "shl":
        return s64(p << (q & 63n));
      case "shr_s":
        return p >> (q & 63n);
      case "shr_u":
        return s64(u64(p) >> (q & 63n));
      case "eq":
        return bool(p === q);
      case "ne":
        return bool(p !== q);
      case "lt_s":
        return bool(p < q);
      case "gt_s":
        return bool(p > q);
      case "le_s":
        return bool(p <= q);
      case "ge_s":
        return bool(p >= q);
      case "lt_u":
        return bool(u64(p) < u64(q));
      case "gt_u":
        return bool(u64(p) > u64(q));
      case "le_u":
        return bool(u64(p) <= u64(q));
      case "ge_u":
        return bool(u64(p) >= u64(q));
      case "eqz":
        return bool(p === 0n);
    }
  }
  throw new Error(`${node.op} is not worked out while planning`);
}

/** Steps that a loop may take here before it is left to run time. */
const LOOP_STEPS_MAX = 10_000;

function run(node: IrNode, arena: Arena, bound: Map<unknown, Raw>): Raw {
  const value = (index: number): Raw => run(node.args[index], arena, bound);
  switch (node.op) {
    case "literal":
      return (node.value as { valueOf(): Raw }).valueOf();
    case "i32.const":
    case "i64.const":
    case "f32.const":
    case "f64.const":
      return node.value as Raw;
    case "select":
    case "if":
      return value(0) !== 0 ? value(1) : value(2);
    case "bound": {
      const found = bound.get(node.value);
      if (found === undefined) throw new Error("unbound");
      return found;
    }
    case "bind":
      bound.set(node.value, value(0));
      return value(1);
    case "loop": {
      bound.set(node.value, value(0));
      while (value(1) !== 0) {
        if (++arena.steps > LOOP_STEPS_MAX) throw new Error("too many steps while planning");
        bound.set(node.value, value(2));
      }
      return bound.get(node.value)!;
    }
    default:
      return apply(node, node.args.map((_, i) => value(i)), arena);
  }
}
