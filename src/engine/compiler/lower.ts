/** Lowers IR to instructions: for one row, or for two rows in the 64-bit lanes of a vector. */
import { assert } from "../../assert.ts";
import type { Code } from "../../wasm/assembler.ts";
import type { IrNode } from "./ir.ts";
import type { Library, LibraryName } from "./library.ts";

/** Locations of the values of inputs and bound nodes. */
export interface ScalarScope {
  code: Code;
  library: Library;
  /** The local that holds the input's value for the row. */
  input(index: number): number;
  bound: Map<object, number>;
  /** Leaves the kernel if the query was cancelled. Emitted into each iteration of a `loop`. */
  poll(): void;
}

const LOADS: Record<string, true> = { "i32.load8_u": true, "i32.load16_u": true, "i32.load": true, "i64.load": true };

/** Leaves the node's value on the stack. */
export function lowerScalar(node: IrNode, scope: ScalarScope): void {
  const { code } = scope;
  const { args } = node;
  const all = () => args.forEach((arg) => lowerScalar(arg, scope));
  switch (node.op) {
    case "input":
      code.get(scope.input(node.value as number));
      return;
    case "i32.const":
      code.i32(node.value as number);
      return;
    case "i64.const":
      code.i64(node.value as bigint);
      return;
    case "f32.const":
      code.f32(node.value as number);
      return;
    case "f64.const":
      code.f64(node.value as number);
      return;
    case "select":
      lowerScalar(args[1], scope);
      lowerScalar(args[2], scope);
      lowerScalar(args[0], scope);
      code.op("select");
      return;
    case "if":
      lowerScalar(args[0], scope);
      code.if(() => lowerScalar(args[1], scope), () => lowerScalar(args[2], scope), node.type);
      return;
    case "bind": {
      lowerScalar(args[0], scope);
      const local = code.local(args[0].type);
      code.set(local);
      scope.bound.set(node.value as object, local);
      lowerScalar(args[1], scope);
      return;
    }
    case "bound": {
      const local = scope.bound.get(node.value as object);
      assert(local !== undefined, "a bound value is used only inside its bind");
      code.get(local);
      return;
    }
    case "loop": {
      const state = code.local(node.type);
      lowerScalar(args[0], scope);
      code.set(state);
      scope.bound.set(node.value as object, state);
      code.block((done) =>
        code.loop((again) => {
          lowerScalar(args[1], scope);
          code.op("i32.eqz").brIf(done);
          scope.poll();
          lowerScalar(args[2], scope);
          code.set(state).br(again);
        })
      );
      code.get(state);
      return;
    }
  }
  all();
  if (node.op.startsWith("text.")) code.call(scope.library.index(node.op as LibraryName));
  else if (LOADS[node.op]) code.memory(node.op);
  else code.op(node.op);
}

/**
 * Representation of a value in lanes: i32 sign-extended to 64 bits, f32 as the f64 of the same value, i64 and f64
 * unchanged. A comparison is a mask (all bits of a lane) and becomes 0 or 1 only where a number is needed.
 */
type LaneForm = "value" | "mask";

export interface LaneScope {
  code: Code;
  /** The local (v128) that holds the input's lanes; undefined if the input has none. */
  input(index: number): number;
  bound: Map<object, { local: number; form: LaneForm }>;
}

const COMPARISONS = new Set(["eq", "ne", "lt_s", "gt_s", "le_s", "ge_s"]);
const UNSIGNED: Record<string, string> = { lt_u: "lt_s", gt_u: "gt_s", le_u: "le_s", ge_u: "ge_s" };
const FLOAT_COMPARISONS = new Set(["eq", "ne", "lt", "gt", "le", "ge"]);
const FLOAT_ARITHMETIC = new Set([
  "add",
  "sub",
  "mul",
  "div",
  "min",
  "max",
  "abs",
  "neg",
  "ceil",
  "floor",
  "trunc",
  "nearest",
  "sqrt",
]);
const SHIFTS = new Set(["shl", "shr_s", "shr_u"]);
const OTHERS = new Set([
  "select",
  "bind",
  "bound",
  "i32.const",
  "i64.const",
  "f32.const",
  "f64.const",
  "i32.add",
  "i32.sub",
  "i32.mul",
  "i32.and",
  "i32.or",
  "i32.xor",
  "i32.eqz",
  "i32.wrap_i64",
  "i32.extend8_s",
  "i32.extend16_s",
  "i32.trunc_sat_f64_s",
  "i32.trunc_sat_f32_s",
  "i32.reinterpret_f32",
  "i64.add",
  "i64.sub",
  "i64.mul",
  "i64.and",
  "i64.or",
  "i64.xor",
  "i64.eqz",
  "i64.extend_i32_s",
  "i64.extend_i32_u",
  "i64.reinterpret_f64",
  "f64.copysign",
  "f64.promote_f32",
  "f64.convert_i32_s",
  "f64.convert_i64_s",
  "f64.reinterpret_i64",
  "f32.demote_f64",
  "f32.convert_i32_s",
]);

/** True if every node of the tree has a lane form. `hasLanes` decides for inputs. */
export function isLaneable(node: IrNode, hasLanes: (input: number) => boolean): boolean {
  if (node.op === "input") return hasLanes(node.value as number);
  return hasLaneForm(node) && node.args.every((arg) => isLaneable(arg, hasLanes));
}

function hasLaneForm(node: IrNode): boolean {
  if (OTHERS.has(node.op)) return true;
  const [type, name] = node.op.split(".");
  if (type === "i32" || type === "i64") {
    if (SHIFTS.has(name)) return node.args[1].op.endsWith(".const"); // lanes shift by one count
    return COMPARISONS.has(name) || name in UNSIGNED;
  }
  if (type === "f64" || type === "f32") return FLOAT_COMPARISONS.has(name) || FLOAT_ARITHMETIC.has(name);
  return false;
}

/** Moves i32 lanes 0 and 2 to lanes 0 and 1. */
const EVEN_I32 = [0, 1, 2, 3, 8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11];
const SIGN_I64 = -0x8000000000000000n;

function lower(node: IrNode, scope: LaneScope): LaneForm {
  const { code } = scope;
  const { args } = node;
  const value = (k: number) => lowerLanes(args[k], scope);
  const values = () => args.forEach((_, k) => value(k));
  const [type, name] = node.op.split(".");

  switch (node.op) {
    case "input":
      code.get(scope.input(node.value as number));
      return "value";
    case "i32.const":
      code.splat64(BigInt(node.value as number));
      return "value";
    case "i64.const":
      code.splat64(node.value as bigint);
      return "value";
    case "f32.const":
    case "f64.const":
      code.splatF64(type === "f32" ? Math.fround(node.value as number) : node.value as number);
      return "value";
    case "select": {
      const masks = isMask(args[1], scope) && isMask(args[2], scope);
      const branch = (k: number) => masks ? lowerMask(args[k], scope) : value(k);
      branch(1);
      branch(2);
      lowerMask(args[0], scope);
      code.op("v128.bitselect");
      return masks ? "mask" : "value";
    }
    case "bind": {
      const form = lower(args[0], scope);
      const local = code.local("v128");
      code.set(local);
      scope.bound.set(node.value as object, { local, form });
      return lower(args[1], scope);
    }
    case "bound": {
      const bound = scope.bound.get(node.value as object);
      assert(bound !== undefined, "a bound value is used only inside its bind");
      code.get(bound.local);
      return bound.form;
    }
    case "i32.and":
    case "i32.or":
    case "i32.xor":
      if (isMask(args[0], scope) && isMask(args[1], scope)) {
        lowerMask(args[0], scope);
        lowerMask(args[1], scope);
        code.op(`v128.${name}`);
        return "mask";
      }
      values();
      code.op(`v128.${name}`);
      return "value";
    case "i32.eqz":
      if (isMask(args[0], scope)) {
        lowerMask(args[0], scope);
        code.op("v128.not");
        return "mask";
      }
      value(0);
      code.splat64(0n).op("i64x2.eq");
      return "mask";
    case "i64.eqz":
      value(0);
      code.splat64(0n).op("i64x2.eq");
      return "mask";
    case "i64.and":
    case "i64.or":
    case "i64.xor":
      values();
      code.op(`v128.${name}`);
      return "value";
    case "i32.wrap_i64":
      value(0);
      extend(code, 32);
      return "value";
    case "i32.extend8_s":
      value(0);
      extend(code, 56);
      return "value";
    case "i32.extend16_s":
      value(0);
      extend(code, 48);
      return "value";
    case "i32.trunc_sat_f64_s":
    case "i32.trunc_sat_f32_s":
      value(0);
      code.op("i32x4.trunc_sat_f64x2_s_zero").op("i64x2.extend_low_i32x4_s");
      return "value";
    case "i32.reinterpret_f32":
      value(0);
      code.op("f32x4.demote_f64x2_zero").op("i64x2.extend_low_i32x4_s");
      return "value";
    case "i64.extend_i32_s":
    case "i64.reinterpret_f64":
    case "f64.reinterpret_i64":
    case "f64.promote_f32":
      value(0);
      return "value";
    case "i64.extend_i32_u":
      value(0);
      code.splat64(0xFFFFFFFFn).op("v128.and");
      return "value";
    case "f64.convert_i32_s":
    case "f32.convert_i32_s":
      value(0);
      toEven(code);
      code.op("f64x2.convert_low_i32x4_s");
      if (type === "f32") round(code);
      return "value";
    case "f64.convert_i64_s":
      value(0);
      convertI64(code);
      return "value";
    case "f64.copysign": {
      values();
      code.splat64(~SIGN_I64).op("v128.bitselect"); // magnitude's bits where the mask is set, sign of the second elsewhere
      return "value";
    }
    case "f32.demote_f64":
      value(0);
      round(code);
      return "value";
  }

  if (SHIFTS.has(name)) {
    value(0);
    const count = Number(args[1].value as number | bigint);
    if (type === "i64") code.i32(count & 63).op(`i64x2.${name}`);
    else {
      if (name === "shr_u") code.splat64(0xFFFFFFFFn).op("v128.and");
      code.i32(count & 31).op(`i64x2.${name}`);
      extend(code, 32);
    }
    return "value";
  }
  if (type === "i32" || type === "i64") {
    if (COMPARISONS.has(name)) {
      values();
      code.op(`i64x2.${name}`);
      return "mask";
    }
    if (name in UNSIGNED) {
      for (const k of [0, 1]) {
        value(k);
        if (type === "i32") code.splat64(0xFFFFFFFFn).op("v128.and");
        else code.splat64(SIGN_I64).op("v128.xor");
      }
      code.op(`i64x2.${UNSIGNED[name]}`);
      return "mask";
    }
    values();
    code.op(type === "i32" && name === "mul" ? "i32x4.mul" : `i64x2.${name}`);
    if (type === "i32") extend(code, 32);
    return "value";
  }
  values();
  code.op(`f64x2.${name}`);
  if (FLOAT_COMPARISONS.has(name)) return "mask";
  // Rounding to f64 and then to f32 equals one rounding to f32, because 53 >= 2 * 24 + 2.
  if (type === "f32" && (name === "add" || name === "sub" || name === "mul" || name === "div" || name === "sqrt")) {
    round(code);
  }
  return "value";
}

function extend(code: Code, bits: number): void {
  code.i32(bits).op("i64x2.shl").i32(bits).op("i64x2.shr_s");
}

function round(code: Code): void {
  code.op("f32x4.demote_f64x2_zero").op("f64x2.promote_low_f32x4");
}

/** Moves the low halves of both lanes to the first two i32 lanes. */
export function toEven(code: Code): void {
  const local = code.local("v128");
  code.tee(local).get(local).shuffle(EVEN_I32);
}

/**
 * Exact for all 64 bits: puts the halves into mantissas with known exponents.
 * Source: Mysticial, https://stackoverflow.com/questions/41144668 (int64 to double, full range)
 */
function convertI64(code: Code): void {
  const value = code.local("v128");
  code.set(value);
  code.get(value).i32(32).op("i64x2.shr_u").splat64(0x4530000080000000n).op("v128.xor");
  code.splat64(0x4530000080100000n).op("f64x2.sub");
  code.get(value).splat64(0xFFFFFFFFn).op("v128.and").splat64(0x4330000000000000n).op("v128.or");
  code.op("f64x2.add");
}

function isMask(node: IrNode, scope: LaneScope): boolean {
  if (node.type !== "i32") return false;
  if (node.op === "bound") return scope.bound.get(node.value as object)?.form === "mask";
  if (node.op === "bind") return false; // not known before it is lowered; lowerMask converts it to a mask
  if (node.op === "select") return isMask(node.args[1], scope) && isMask(node.args[2], scope);
  if (node.op === "i32.and" || node.op === "i32.or" || node.op === "i32.xor") {
    return isMask(node.args[0], scope) && isMask(node.args[1], scope);
  }
  const name = node.op.split(".")[1];
  return name === "eqz" || COMPARISONS.has(name) || name in UNSIGNED || FLOAT_COMPARISONS.has(name);
}

/** Leaves the node's lanes on the stack as numbers. */
export function lowerLanes(node: IrNode, scope: LaneScope): void {
  if (lower(node, scope) === "mask") scope.code.splat64(1n).op("v128.and");
}

/** Leaves a mask of the lanes for which the i32 node is not 0. */
export function lowerMask(node: IrNode, scope: LaneScope): void {
  // A boolean made of masks and numbers: convert both to masks. Correct for and/or of 0 and 1, as in conditions.
  if (lower(node, scope) === "value") scope.code.splat64(0n).op("i64x2.ne");
}

const NARROW_COMPARISONS = new Set(["i32.eq", "i32.ne", "i32.lt_s", "i32.gt_s", "i32.le_s", "i32.ge_s"]);

/**
 * True if the tree is a condition on 32-bit values only, so that four rows fit into a vector. `isValue` decides for
 * inputs.
 */
export function isNarrow(node: IrNode, isValue: (input: number) => boolean): boolean {
  const { op, args } = node;
  if (NARROW_COMPARISONS.has(op)) {
    return args.every((arg) =>
      arg.op === "i32.const" || (arg.op === "input" && arg.type === "i32" && isValue(arg.value as number))
    );
  }
  if (op === "i32.and" || op === "i32.or") return args.every((arg) => isNarrow(arg, isValue));
  return op === "i32.eqz" && isNarrow(args[0], isValue);
}

/** Leaves the mask of four rows. `push` leaves an input's four values. */
export function lowerNarrow(node: IrNode, code: Code, push: (input: number) => void): void {
  if (node.op === "input") return push(node.value as number);
  if (node.op === "i32.const") {
    code.i32(node.value as number).op("i32x4.splat");
    return;
  }
  for (const arg of node.args) lowerNarrow(arg, code, push);
  const name = node.op.split(".")[1];
  if (name === "eqz") code.op("v128.not");
  else code.op(name === "and" || name === "or" ? `v128.${name}` : `i32x4.${name}`);
}

/** The operands of a conjunction. */
export function partsOf(condition: IrNode): IrNode[] {
  return condition.op === "i32.and" ? condition.args.flatMap(partsOf) : [condition];
}

/** Distinct inputs that the trees read, ascending. */
export function inputsOf(nodes: readonly IrNode[]): number[] {
  const seen = new Set<number>();
  const visit = (node: IrNode) => {
    if (node.op === "input") seen.add(node.value as number);
    node.args.forEach(visit);
  };
  nodes.forEach(visit);
  return [...seen].sort((a, b) => a - b);
}

/** The tree as text, for cache keys. Bound values are numbered in order. */
export function shapeOf(node: IrNode): string {
  const numbers = new Map<object, number>();
  const visit = (n: IrNode): string => {
    let value = "";
    if (n.op === "bind" || n.op === "loop" || n.op === "bound") {
      const identity = n.value as object;
      if (!numbers.has(identity)) numbers.set(identity, numbers.size);
      value = `#${numbers.get(identity)}`;
    } else if (n.value !== undefined) value = Object.is(n.value, -0) ? "-0" : String(n.value);
    return n.args.length ? `${n.op}${value}(${n.args.map(visit).join(",")})` : `${n.op}:${n.type}${value}`;
  };
  return visit(node);
}
