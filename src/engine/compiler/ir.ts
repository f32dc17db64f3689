/**
 * A typed expression tree that is compiled to WebAssembly. The `emit` functions of function entries build it, without regard to
 * lanes. The compiler lowers a tree to 2 × 64-bit SIMD lanes if every node has a lane form, and to scalar code otherwise.
 *
 * The wasm type of an SQL value:
 *
 *     BOOLEAN BYTE SHORT CHAR INT IPv4 SYMBOL(code)    i32 (BOOLEAN 0 or 1; BYTE, SHORT sign-, CHAR zero-extended)
 *     LONG DATE TIMESTAMP TIMESTAMP_NS                 i64
 *     DECIMAL of up to 18 digits, GEOHASH              i64
 *     FLOAT  f32      DOUBLE  f64
 *     text                                             i64: address | length << 32, negative is null
 *
 * 128-bit values have no IR: functions over them are `batch` or `wide` functions.
 */
import { type Form, NULL_TEXT, typeOf } from "../../types/mod.ts";

export type WasmType = "i32" | "i64" | "f32" | "f64";

export interface IrNode {
  readonly op: string;
  readonly type: WasmType;
  readonly args: readonly IrNode[];
  /** The value of a constant, the index of an input, or the identity of a local. */
  readonly value?: number | bigint | object;
}

function node(op: string, type: WasmType, args: readonly IrNode[], value?: IrNode["value"]): IrNode {
  return { op, type, args, value };
}

const binary = (type: WasmType, name: string, result: WasmType = type) => (a: IrNode, b: IrNode): IrNode =>
  node(`${type}.${name}`, result, [a, b]);
const unary = (type: WasmType, name: string, result: WasmType = type) => (a: IrNode): IrNode =>
  node(`${type}.${name}`, result, [a]);

function integers(type: "i32" | "i64") {
  return {
    add: binary(type, "add"),
    sub: binary(type, "sub"),
    mul: binary(type, "mul"),
    /** Traps on zero and on min / -1: guard with `ifElse`. */
    divS: binary(type, "div_s"),
    remS: binary(type, "rem_s"),
    divU: binary(type, "div_u"),
    remU: binary(type, "rem_u"),
    and: binary(type, "and"),
    or: binary(type, "or"),
    xor: binary(type, "xor"),
    shl: binary(type, "shl"),
    shrS: binary(type, "shr_s"),
    shrU: binary(type, "shr_u"),
    eq: binary(type, "eq", "i32"),
    ne: binary(type, "ne", "i32"),
    ltS: binary(type, "lt_s", "i32"),
    gtS: binary(type, "gt_s", "i32"),
    leS: binary(type, "le_s", "i32"),
    geS: binary(type, "ge_s", "i32"),
    ltU: binary(type, "lt_u", "i32"),
    gtU: binary(type, "gt_u", "i32"),
    leU: binary(type, "le_u", "i32"),
    geU: binary(type, "ge_u", "i32"),
    eqz: unary(type, "eqz", "i32"),
    clz: unary(type, "clz"),
    ctz: unary(type, "ctz"),
    popcnt: unary(type, "popcnt"),
  };
}

function floats(type: "f32" | "f64") {
  return {
    const: (value: number): IrNode => node(`${type}.const`, type, [], value),
    add: binary(type, "add"),
    sub: binary(type, "sub"),
    mul: binary(type, "mul"),
    div: binary(type, "div"),
    min: binary(type, "min"),
    max: binary(type, "max"),
    copysign: binary(type, "copysign"),
    eq: binary(type, "eq", "i32"),
    ne: binary(type, "ne", "i32"),
    lt: binary(type, "lt", "i32"),
    gt: binary(type, "gt", "i32"),
    le: binary(type, "le", "i32"),
    ge: binary(type, "ge", "i32"),
    abs: unary(type, "abs"),
    neg: unary(type, "neg"),
    ceil: unary(type, "ceil"),
    floor: unary(type, "floor"),
    trunc: unary(type, "trunc"),
    nearest: unary(type, "nearest"),
    sqrt: unary(type, "sqrt"),
  };
}

export const i32 = {
  const: (value: number): IrNode => node("i32.const", "i32", [], value),
  ...integers("i32"),
  wrap: (a: IrNode): IrNode => node("i32.wrap_i64", "i32", [a]),
  /** Saturating; NaN gives 0. */
  truncSatF64: (a: IrNode): IrNode => node("i32.trunc_sat_f64_s", "i32", [a]),
  truncSatF32: (a: IrNode): IrNode => node("i32.trunc_sat_f32_s", "i32", [a]),
  extend8: unary("i32", "extend8_s"),
  extend16: unary("i32", "extend16_s"),
  reinterpret: (a: IrNode): IrNode => node("i32.reinterpret_f32", "i32", [a]),
};

export const i64 = {
  const: (value: bigint): IrNode => node("i64.const", "i64", [], value),
  ...integers("i64"),
  extendS: (a: IrNode): IrNode => node("i64.extend_i32_s", "i64", [a]),
  extendU: (a: IrNode): IrNode => node("i64.extend_i32_u", "i64", [a]),
  truncSatF64: (a: IrNode): IrNode => node("i64.trunc_sat_f64_s", "i64", [a]),
  truncSatF32: (a: IrNode): IrNode => node("i64.trunc_sat_f32_s", "i64", [a]),
  reinterpret: (a: IrNode): IrNode => node("i64.reinterpret_f64", "i64", [a]),
};

export const f32 = {
  ...floats("f32"),
  demote: (a: IrNode): IrNode => node("f32.demote_f64", "f32", [a]),
  convertI32: (a: IrNode): IrNode => node("f32.convert_i32_s", "f32", [a]),
  convertI64: (a: IrNode): IrNode => node("f32.convert_i64_s", "f32", [a]),
  reinterpret: (a: IrNode): IrNode => node("f32.reinterpret_i32", "f32", [a]),
};

export const f64 = {
  ...floats("f64"),
  promote: (a: IrNode): IrNode => node("f64.promote_f32", "f64", [a]),
  convertI32: (a: IrNode): IrNode => node("f64.convert_i32_s", "f64", [a]),
  convertI64: (a: IrNode): IrNode => node("f64.convert_i64_s", "f64", [a]),
  reinterpret: (a: IrNode): IrNode => node("f64.reinterpret_i64", "f64", [a]),
};

/** `whenTrue` if `condition` (i32) is not 0. Both branches are evaluated. Has lanes. */
export function select(condition: IrNode, whenTrue: IrNode, whenFalse: IrNode): IrNode {
  return node("select", whenTrue.type, [condition, whenTrue, whenFalse]);
}

/** Like `select`, but evaluates only the branch taken, such as a division that might trap. Scalar only. */
export function ifElse(condition: IrNode, whenTrue: IrNode, whenFalse: IrNode): IrNode {
  return node("if", whenTrue.type, [condition, whenTrue, whenFalse]);
}

/** Evaluates `value` once for several uses in `body`. */
export function bind(value: IrNode, body: (bound: IrNode) => IrNode): IrNode {
  const identity = {};
  const result = body(node("bound", value.type, [], identity));
  return node("bind", result.type, [value, result], identity);
}

/**
 * The i-th input of the kernel for a row: a column, or a constant from the parameter block. Only the compiler creates
 * it.
 */
export function input(index: number, type: WasmType): IrNode {
  return node("input", type, [], index);
}

/**
 * A scalar loop: `state` starts as `initial` and becomes `step(state)` while `condition(state)` holds. Returns the last
 * state. Polls for cancellation. Scalar only.
 */
export function loop(initial: IrNode, condition: (state: IrNode) => IrNode, step: (state: IrNode) => IrNode): IrNode {
  const identity = {};
  const state = node("bound", initial.type, [], identity);
  return node("loop", initial.type, [initial, condition(state), step(state)], identity);
}

/** Memory reads, for text. Addresses are i32. */
export const load = {
  u8: (address: IrNode): IrNode => node("i32.load8_u", "i32", [address]),
  u16: (address: IrNode): IrNode => node("i32.load16_u", "i32", [address]),
  i32: (address: IrNode): IrNode => node("i32.load", "i32", [address]),
  i64: (address: IrNode): IrNode => node("i64.load", "i64", [address]),
};

/** Values of layout text. */
export const text = {
  null: (): IrNode => i64.const(NULL_TEXT),
  address: (a: IrNode): IrNode => i32.wrap(a),
  /** Length in bytes; -1 for null. */
  length: (a: IrNode): IrNode => i32.wrap(i64.shrS(a, i64.const(32n))),
  /** Length in bytes; 0 for null. */
  sizeBytes: (a: IrNode): IrNode => select(text.isNull(a), i32.const(0), text.length(a)),
  isNull: (a: IrNode): IrNode => i64.ltS(a, i64.const(0n)),
  /** Library functions of the compiler, over bytes. Null equals null and sorts first. */
  eq: (a: IrNode, b: IrNode): IrNode => node("text.eq", "i32", [a, b]),
  /** Negative, 0, positive. */
  compare: (a: IrNode, b: IrNode): IrNode => node("text.compare", "i32", [a, b]),
  hash: (a: IrNode): IrNode => node("text.hash", "i64", [a]),
  /** Byte offset of the first `b` in `a`, or -1. */
  indexOf: (a: IrNode, b: IrNode): IrNode => node("text.indexOf", "i32", [a, b]),
};

export const FORM_TYPE: Readonly<Record<Form, WasmType>> = {
  i8: "i32",
  i16: "i32",
  u16: "i32",
  i32: "i32",
  i64: "i64",
  f32: "f32",
  f64: "f64",
};

/** The wasm type of a value. Undefined for types of more than 64 bits. A SYMBOL is its code. */
export function wasmTypeOf(tag: string): WasmType | undefined {
  const { form } = typeOf(tag);
  return form === undefined ? undefined : FORM_TYPE[form];
}

/** The null of a type; for types without null, the value that replaces it. */
export function nullOf(tag: string): IrNode {
  const { layout, nullValue } = typeOf(tag);
  switch (wasmTypeOf(tag)) {
    case "i32":
      return i32.const(Number(nullValue));
    case "f32":
      return f32.const(NaN);
    case "f64":
      return f64.const(NaN);
    default:
      return layout === "text" ? text.null() : i64.const(BigInt(nullValue));
  }
}

/** False for NaN and infinities, which are null. */
export function finite(x: IrNode): IrNode {
  return x.type === "f32" ? f32.lt(f32.abs(x), f32.const(Infinity)) : f64.lt(f64.abs(x), f64.const(Infinity));
}

/** Tests that a value is not null; undefined for types without null. A symbol is given as its code or as its text. */
export function notNull(x: IrNode, tag: string): IrNode | undefined {
  const { layout, nullable, nullValue } = typeOf(tag);
  if (!nullable) return undefined;
  if (x.type === "f32" || x.type === "f64") return finite(x);
  if (x.type === "i32") return layout === "symbol" ? i32.geS(x, i32.const(0)) : i32.ne(x, i32.const(Number(nullValue)));
  const isText = layout === "text" || layout === "symbol";
  return isText ? i64.geS(x, i64.const(0n)) : i64.ne(x, i64.const(BigInt(nullValue)));
}

/** The opposite of `notNull`, with the same number of instructions. */
export function isNull(x: IrNode, tag: string): IrNode | undefined {
  const { layout, nullable, nullValue } = typeOf(tag);
  if (!nullable) return undefined;
  if (x.type === "f32" || x.type === "f64") return i32.eqz(finite(x));
  if (x.type === "i32") return layout === "symbol" ? i32.ltS(x, i32.const(0)) : i32.eq(x, i32.const(Number(nullValue)));
  const isText = layout === "text" || layout === "symbol";
  return isText ? text.isNull(x) : i64.eq(x, i64.const(BigInt(nullValue)));
}
