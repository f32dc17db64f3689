/** Lowers plan expressions to IR: numbers the inputs, calls the entries' `emit`, and adds the rules for nulls. */
import { assert } from "../../assert.ts";
import type { FunctionEntry } from "../../sql/functions/entry.ts";
import { childrenOf, type Expr } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { type Form, layoutOf, NULL_TEXT, typeOf, type Value } from "../../types/mod.ts";
import { TextArena, Workspace } from "../columns.ts";
import type { Changes, Constant, QueryContext } from "../contract.ts";
import {
  bind,
  f32,
  f64,
  finite,
  FORM_TYPE,
  i32,
  i64,
  ifElse,
  input,
  type IrNode,
  isNull,
  load,
  loop,
  nullOf,
  select,
  text,
  type WasmType,
  wasmTypeOf,
} from "./ir.ts";
import { codesOfValues, symbolsAllowedBy } from "../symbol-codes.ts";
import { isLaneable } from "./lower.ts";

/** The source of a kernel input for each row. */
export type Input =
  /** A column of the batch. CHAR is zero-extended: "u16". */
  | { kind: "column"; column: number; form: Form }
  /** The k-th 8-byte word of a value of `width` bytes. */
  | { kind: "word"; column: number; width: number; k: number }
  /** The text of a symbol: the column of codes, and the dictionary's entries. */
  | { kind: "symbolText"; column: number; entries: number }
  /** One precomputed value for each dictionary entry, from `address` on; the first is that of code -1. */
  | { kind: "lookup"; column: number; address: number; form: Form }
  /** A constant in the parameter block. */
  | { kind: "constant"; type: WasmType; value: number | bigint }
  /** A bit of a mask, which is given as a column: of row r, bit r & 7 of byte r >> 3. A kernel may read whole words of 8 bytes. */
  | { kind: "mask"; column: number }
  /** `base + row`, with the base in the parameter block. */
  | { kind: "row" };

/** What a constant input has its value from. */
type ConstantOrigin = { constant: Constant } | { list: readonly Value[]; at: number } | { value: Value };

/** A constant input for an expression of the current run. */
interface ConstantUse {
  input: number;
  tag: string;
  origin: ConstantOrigin;
}

/** New values of constant inputs. */
export type ChangedInputs = ReadonlyMap<number, number | bigint>;

export type { Form as ColumnForm } from "../../types/mod.ts";
export { FORM_TYPE } from "./ir.ts";

export const FORM_WIDTH: Readonly<Record<Form, number>> = { i8: 1, i16: 2, u16: 2, i32: 4, i64: 8, f32: 4, f64: 8 };

/** Undefined for types of more than 64 bits, which kernels cannot process. */
export function formOf(tag: string): Form | undefined {
  return typeOf(tag).form;
}

export function isText(tag: string): boolean {
  return layoutOf(tag) === "text";
}

/** The declared class of the argument; the last one repeats for variadic entries. */
export function argumentClass(entry: FunctionEntry, index: number): string {
  return entry.args[Math.min(index, entry.args.length - 1)]?.type ?? "any";
}

/** Inputs with the codes of a condition's symbols. */
interface SymbolCodes {
  inputs: number[];
}

function valueOf(origin: ConstantOrigin): Value {
  return "constant" in origin ? origin.constant.value : "list" in origin ? origin.list[origin.at] : origin.value;
}

function originIn(origin: ConstantOrigin, changes: Changes): ConstantOrigin {
  if ("constant" in origin) return { constant: changes.constant(origin.constant) };
  return "list" in origin ? { ...origin, list: changes.list(origin.list) } : origin;
}

const CHAIN_MAX = 8;
/** Most codes that are compared one by one. */
const FEW_CODES = 4;

export class ExpressionCompiler {
  readonly inputs: Input[] = [];
  /** Input numbers by key. */
  private readonly byKey = new Map<string, number>();
  private readonly arena: TextArena;
  /** Texts of constants that have changed. */
  private readonly changedTexts: TextArena;
  private readonly lookups = new Map<string, { node: IrNode; codes?: SymbolCodes }>();
  private readonly uses: ConstantUse[] = [];
  private readonly codes: { expr: Expr; of: SymbolCodes; dictionary: Dictionary }[] = [];
  /** Expressions whose constants are part of the code or of tables. */
  private readonly fixed: Expr[] = [];

  constructor(
    readonly inputTypes: readonly string[],
    /** By column, for SYMBOL columns. */
    readonly dictionaries: readonly (Dictionary | undefined)[],
    readonly context: QueryContext,
    readonly space: Workspace,
    /** Computes an expression over one symbol column for every dictionary entry. Undefined if that does not pay off. */
    private readonly perEntry?: (expr: Expr, column: number, dictionary: Dictionary) => number | undefined,
    private readonly rowIdColumn = -1,
  ) {
    this.arena = new TextArena(space);
    this.changedTexts = new TextArena(space);
  }

  private add(key: string, make: () => Input): number {
    let index = this.byKey.get(key);
    if (index === undefined) {
      index = this.inputs.push(make()) - 1;
      this.byKey.set(key, index);
    }
    return index;
  }

  /** Column `index` in its layout; a symbol as its code. */
  column(index: number): IrNode {
    if (index === this.rowIdColumn) return input(this.add("row", () => ({ kind: "row" })), "i64");
    const form = formOf(this.inputTypes[index]);
    assert(form !== undefined, "128-bit columns have no kernel form");
    return input(this.add(`c${index}`, () => ({ kind: "column", column: index, form })), FORM_TYPE[form]);
  }

  constant(value: Value, tag: string): IrNode {
    return this.constantOf({ value }, tag);
  }

  private constantOf(origin: ConstantOrigin, tag: string): IrNode {
    const value = valueOf(origin);
    // Tests for null are left out for constants that are not null.
    if ("constant" in origin && value === null) this.fixed.push(origin.constant);
    const type = FORM_TYPE[formOf(tag)!];
    const index = this.add(
      `k${tag}:${typeof value}:${Object.is(value, -0) ? "-0" : value}`,
      () => ({ kind: "constant", type, value: this.constantBits(value, tag) }),
    );
    this.uses.push({ input: index, tag, origin });
    return input(index, type);
  }

  /**
   * The inputs that have to be set for a run with changed constants; undefined if the kernel has to be made anew. The last ones stay valid
   * until the next call.
   */
  changed(changes: Changes): ChangedInputs | undefined {
    if (this.fixed.some((expr) => changes.mapped(expr) !== expr)) return undefined;
    const wanted = new Map<number, { tag: string; value: Value }>();
    // Equal constants share an input.
    const want = (index: number, tag: string, value: Value) => {
      const other = wanted.get(index);
      if (other === undefined) wanted.set(index, { tag, value });
      return other === undefined || Object.is(other.value, value);
    };
    for (const use of this.uses) {
      use.origin = originIn(use.origin, changes);
      if (!want(use.input, use.tag, valueOf(use.origin))) return undefined;
    }
    for (const use of this.codes) {
      const { of, dictionary } = use, expr = use.expr = changes.mapped(use.expr);
      const found = codesOfValues(
        this.context.heap,
        dictionary,
        symbolsAllowedBy(expr, this.context)!.values,
      );
      if (found.length !== of.inputs.length) return undefined;
      if (!of.inputs.every((index, k) => want(index, "INT", found[k]))) return undefined;
    }
    this.changedTexts.release();
    const inputs = new Map<number, number | bigint>();
    for (const [index, { tag, value }] of wanted) inputs.set(index, constantBits(value, tag, this.changedTexts));
    return inputs;
  }

  /** The 8-byte words of a column of 128 or 256 bits. */
  words(index: number): IrNode[] {
    const { width } = typeOf(this.inputTypes[index]);
    return Array.from(
      { length: width / 8 },
      (_, k) => input(this.add(`w${index}.${k}`, () => ({ kind: "word", column: index, width, k })), "i64"),
    );
  }

  /** A number passed to the kernel: an address or a count. */
  parameter(value: number): IrNode {
    return input(this.inputs.push({ kind: "constant", type: "i32", value }) - 1, "i32");
  }

  private constantBits(value: Value, tag: string): number | bigint {
    return constantBits(value, tag, this.arena);
  }

  /** A value of the tag's wasm type; symbols as codes. */
  lower(expr: Expr): IrNode {
    const looked = this.lookup(expr);
    if (looked !== undefined) return looked;
    switch (expr.kind) {
      case "column":
        return this.column(expr.index);
      case "constant":
        return this.constantOf({ constant: expr }, expr.type);
      case "call":
        return this.call(expr);
      case "case":
        return expr.branches.reduceRight(
          (otherwise, branch) => choose(this.lower(branch.when), this.value(branch.then, expr.type), otherwise),
          this.value(expr.otherwise, expr.type),
        );
      case "in":
        return this.membership(expr);
      case "parameter":
      case "placeholder":
        throw new Error(`a ${expr.kind} must be replaced before its plan runs`);
    }
  }

  /** The value as type `tag`: symbols become text if the tag is a text type. */
  value(expr: Expr, tag: string): IrNode {
    if (expr.kind === "constant" && expr.value === null) return this.constantOf({ constant: expr }, tag);
    return isText(tag) && layoutOf(expr.type) === "symbol" ? this.textOf(expr) : this.lower(expr);
  }

  /** The text of a symbol or text expression. */
  textOf(expr: Expr): IrNode {
    if (layoutOf(expr.type) !== "symbol") return this.lower(expr);
    if (expr.kind === "constant") return this.constantOf({ constant: expr }, "STRING");
    assert(expr.kind === "column", "an expression that computes a symbol has a text type");
    const dictionary = this.dictionaries[expr.index];
    const entries = dictionary?.entries ?? 0;
    return input(this.add(`t${expr.index}`, () => ({ kind: "symbolText", column: expr.index, entries })), "i64");
  }

  private call(expr: Expr & { kind: "call" }): IrNode {
    const { entry, types } = this.context.functions.resolve(expr.function);
    assert(entry.emit !== undefined, `${expr.function} has a kernel form`);
    const args = expr.args.map((arg, k) => (argumentClass(entry, k) === "text" ? this.textOf(arg) : this.lower(arg)));
    return emitCall(
      entry,
      args,
      types,
      expr.type,
      (k) => expr.args[k].kind === "constant" && (expr.args[k] as { value: Value }).value !== null,
    );
  }

  private lookup(expr: Expr): IrNode | undefined {
    if (this.perEntry === undefined) return undefined;
    const column = perEntryColumn(expr, this.inputTypes, this.dictionaries, this.context);
    if (column === undefined) return undefined;
    const dictionary = this.dictionaries[column]!;
    const key = `l${column}:${exprKey(expr)}`;
    const known = this.lookups.get(key);
    if (known !== undefined) {
      if (known.codes === undefined) this.fixed.push(expr);
      else this.codes.push({ expr, of: known.codes, dictionary });
      return known.node;
    }
    const allowed = symbolsAllowedBy(expr, this.context);
    let result: IrNode, codes: number[] | undefined, symbolCodes: SymbolCodes | undefined, address = 0;
    if (allowed !== undefined && allowed.values.length <= FEW_CODES) {
      codes = codesOfValues(this.context.heap, dictionary, allowed.values);
      symbolCodes = { inputs: [] };
      this.codes.push({ expr, of: symbolCodes, dictionary });
    } else {
      const table = this.perEntry(expr, column, dictionary);
      if (table === undefined) return undefined;
      this.fixed.push(expr);
      address = table;
      if (expr.type === "BOOLEAN") codes = this.fewCodes(address, dictionary.count);
    }
    const form = formOf(expr.type)!;
    if (codes !== undefined) {
      const code = this.column(column);
      result = i32.const(0);
      codes.forEach((match, k) => {
        const input = this.codeConstant(match, symbolCodes);
        const test = i32.eq(code, input);
        result = k === 0 ? test : i32.or(result, test);
      });
    } else {
      this.column(column); // codes are an input too
      result = input(this.add(key, () => ({ kind: "lookup", column, address, form })), FORM_TYPE[form]);
    }
    this.lookups.set(key, { node: result, codes: symbolCodes });
    return result;
  }

  /** `codes`: of which it is one, if it follows from constants that can change. */
  private codeConstant(code: number, codes: SymbolCodes | undefined): IrNode {
    if (codes === undefined) return this.constant(code, "INT");
    const index = this.inputs.push({ kind: "constant", type: "i32", value: code }) - 1;
    codes.inputs.push(index);
    return input(index, "i32");
  }

  /**
   * The codes for which a truth table is true, if they are few: comparing codes works in lanes, a table lookup does
   * not.
   */
  private fewCodes(address: number, count: number): number[] | undefined {
    const codes: number[] = [];
    for (let k = 0; k <= count; k++) {
      if (this.context.heap.i8[address + k] !== 0 && codes.push(k - 1) > FEW_CODES) return undefined;
    }
    return codes;
  }

  private membership(expr: Expr & { kind: "in" }): IrNode {
    const { operand, values } = expr;
    const tag = operand.type;
    const value = layoutOf(tag) === "symbol" ? this.textOf(operand) : this.lower(operand);
    const valueTag = layoutOf(tag) === "symbol" ? "STRING" : tag;
    const equal = equality(valueTag);
    if (values.length <= CHAIN_MAX) {
      return bindUnlessSimple(value, (bound) => {
        let result: IrNode = i32.const(0);
        values.forEach((_, k) => {
          const test = equal(bound, this.constantOf({ list: values, at: k }, valueTag));
          result = k === 0 ? test : i32.or(result, test);
        });
        return result;
      });
    }
    this.fixed.push(expr);
    return this.search(value, valueTag, values);
  }

  /**
   * Binary search in a sorted array of the constants. Floats are compared by their f64 bits, which suffices for
   * equality.
   */
  private search(value: IrNode, tag: string, values: readonly Value[]): IrNode {
    const words = BigInt64Array.from(values, (v) => {
      const bits = this.constantBits(v, tag);
      return typeof bits === "bigint" ? bits : FORM_TYPE[formOf(tag)!].startsWith("f") ? floatBits(bits) : BigInt(bits);
    });
    const { heap } = this.context;
    const isPair = isText(tag);
    if (isPair) {
      const bytes = (pair: bigint) =>
        heap.u8.subarray(Number(pair & 0xFFFFFFFFn), Number(pair & 0xFFFFFFFFn) + Number(pair >> 32n));
      const sorted = Array.from(words).sort((a, b) => {
        if (a < 0n || b < 0n) return a < 0n ? (b < 0n ? 0 : -1) : 1;
        return compareBytes(bytes(a), bytes(b));
      });
      words.set(sorted);
    } else words.sort();
    const address = this.space.allocate(words.length * 8);
    heap.i64.set(words, address / 8);
    const base = this.parameter(address);
    const last = this.parameter(words.length - 1);
    let needle: IrNode;
    if (value.type === "i32") needle = i64.extendS(value);
    else if (value.type === "i64") needle = value;
    else {
      const wide = value.type === "f32" ? f64.promote(value) : value;
      needle = bindUnlessSimple(
        wide,
        (x) => select(f64.ne(x, x), i64.const(floatBits(NaN)), i64.reinterpret(f64.add(x, f64.const(0)))),
      );
    }
    const at = (index: IrNode) => load.i64(i32.add(base, i32.shl(index, i32.const(3))));
    // Find the first word not below the needle. The state is low | high << 32.
    return bind(needle, (x) => {
      const below = (word: IrNode) => isPair ? i32.ltS(text.compare(word, x), i32.const(0)) : i64.ltS(word, x);
      const low = (state: IrNode) => i32.wrap(state);
      const high = (state: IrNode) => i32.wrap(i64.shrU(state, i64.const(32n)));
      const pack = (lo: IrNode, hi: IrNode) => i64.or(i64.extendU(lo), i64.shl(i64.extendU(hi), i64.const(32n)));
      const found = loop(
        pack(i32.const(0), last),
        (state) => i32.ltS(low(state), high(state)),
        (state) =>
          bind(
            i32.shrU(i32.add(low(state), high(state)), i32.const(1)),
            (middle) =>
              select(below(at(middle)), pack(i32.add(middle, i32.const(1)), high(state)), pack(low(state), middle)),
          ),
      );
      return bind(at(i32.wrap(found)), (word) => isPair ? text.eq(word, x) : i64.eq(word, x));
    });
  }

  release(): void {
    this.space.release();
  }
}

/** Emits a call with the entry's rule for nulls. `known(k)`: argument k is a non-null constant. */
export function emitCall(
  entry: FunctionEntry,
  args: IrNode[],
  types: string[],
  resultType: string,
  known: (k: number) => boolean,
): IrNode {
  if (entry.nulls === "custom") return bindAll(args, (bound) => entry.emit!(bound, types));
  return bindAll(args, (bound) => {
    const result = entry.emit!(bound, types);
    const tests = bound.flatMap((arg, k) => {
      const test = known(k) ? undefined : isNull(arg, types[k]);
      return test === undefined ? [] : [test];
    });
    if (tests.length === 0) return result;
    const anyNull = tests.reduce((a, b) => i32.or(a, b));
    const none = resultType === "BOOLEAN" ? i32.const(0) : nullOf(resultType);
    return isLaneable(result, () => true) ? select(anyNull, none, result) : ifElse(anyNull, none, result);
  });
}

function bindUnlessSimple(value: IrNode, body: (bound: IrNode) => IrNode): IrNode {
  const simple = value.op === "input" || value.op === "bound" || value.op.endsWith(".const");
  return simple ? body(value) : bind(value, body);
}

/** Binds each argument, so that entries can use it repeatedly without recomputation. */
function bindAll(args: readonly IrNode[], body: (bound: IrNode[]) => IrNode): IrNode {
  const bound: IrNode[] = [];
  const next = (k: number): IrNode =>
    k === args.length ? body(bound) : bindUnlessSimple(args[k], (b) => {
      bound.push(b);
      return next(k + 1);
    });
  return next(0);
}

/** A branch that may be slow or contain a loop is only evaluated when it is taken. */
function choose(condition: IrNode, then: IrNode, otherwise: IrNode): IrNode {
  const cheap = isLaneable(then, () => true) && isLaneable(otherwise, () => true);
  return cheap ? select(condition, then, otherwise) : ifElse(condition, then, otherwise);
}

/** Null equals null. */
function equality(tag: string): (a: IrNode, b: IrNode) => IrNode {
  // Each machine type has its own instruction.
  switch (wasmTypeOf(tag)!) {
    case "i32":
      return i32.eq;
    case "i64":
      return isText(tag) ? text.eq : i64.eq;
    case "f32":
      return (a, b) => i32.or(f32.eq(a, b), i32.eqz(i32.or(finite(a), finite(b))));
    case "f64":
      return (a, b) => i32.or(f64.eq(a, b), i32.eqz(i32.or(finite(a), finite(b))));
  }
}

const floatView = new DataView(new ArrayBuffer(8));
function floatBits(value: number): bigint {
  floatView.setFloat64(0, value + 0);
  return value !== value ? 0x7FF8000000000000n : floatView.getBigInt64(0);
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const end = Math.min(a.length, b.length);
  for (let k = 0; k < end; k++) if (a[k] !== b[k]) return a[k] - b[k];
  return a.length - b.length;
}

/** The form of a constant in kernels: number for i32, f32, f64, bigint for i64. Texts are written to the arena. */
export function constantBits(value: Value, tag: string, arena: TextArena): number | bigint {
  const type = typeOf(tag);
  assert(type.form !== undefined, "128-bit constants have no kernel form");
  if (value === null) return type.layout === "text" ? NULL_TEXT : type.nullValue;
  assert(type.layout !== "symbol", "a constant symbol is text");
  if (type.layout !== "text") return type.toBits(value);
  const [address, length] = arena.encode(type.bytes.toBytes(String(value)));
  return BigInt(address) | BigInt(length) << 32n;
}

/** True if a kernel can compute the expression from columns (and from tables for symbols) alone. */
export function isEmittable(
  expr: Expr,
  inputTypes: readonly string[],
  context: Pick<QueryContext, "functions">,
  perEntry: (expr: Expr) => boolean,
): boolean {
  if (formOf(expr.type) === undefined) return false;
  if (perEntry(expr)) return true;
  switch (expr.kind) {
    case "column":
    case "constant":
      return true;
    case "call":
      return context.functions.resolve(expr.function).entry.emit !== undefined &&
        expr.args.every((arg) => isEmittable(arg, inputTypes, context, perEntry));
    case "case":
      if (layoutOf(expr.type) === "symbol") return false;
      return [expr.otherwise, ...expr.branches.flatMap((b) => [b.when, b.then])].every((part) =>
        isEmittable(part, inputTypes, context, perEntry)
      );
    case "in":
      return isEmittable(expr.operand, inputTypes, context, perEntry);
    case "parameter":
    case "placeholder":
      return false;
  }
}

function isImmutable(expr: Expr, context: Pick<QueryContext, "functions">): boolean {
  if (expr.kind === "call" && context.functions.resolve(expr.function).entry.volatility !== "immutable") return false;
  return childrenOf(expr).every((child) => isImmutable(child, context));
}

/** The same expression over other columns. */
export function mapColumns(expr: Expr, map: (index: number, type: string) => Expr): Expr {
  return expr.kind === "column" ? map(expr.index, expr.type) : mapChildren(expr, (child) => mapColumns(child, map));
}

/** The same expression with other direct sub-expressions. */
export function mapChildren(expr: Expr, map: (child: Expr) => Expr): Expr {
  switch (expr.kind) {
    case "call":
      return { ...expr, args: expr.args.map(map) };
    case "case":
      return {
        ...expr,
        branches: expr.branches.map(({ when, then }) => ({ when: map(when), then: map(then) })),
        otherwise: map(expr.otherwise),
      };
    case "in":
      return { ...expr, operand: map(expr.operand) };
    default:
      return expr;
  }
}

/** The same expression with other constants and lists of IN; the same object if they are all the same. */
export function mapConstants(
  expr: Expr,
  constant: (expr: Constant) => Constant,
  list: (values: readonly Value[]) => readonly Value[],
): Expr {
  const map = (each: Expr) => mapConstants(each, constant, list);
  switch (expr.kind) {
    case "constant":
      return constant(expr);
    case "call": {
      const args = expr.args.map(map);
      return args.every((arg, k) => arg === expr.args[k]) ? expr : { ...expr, args };
    }
    case "case": {
      const branches = expr.branches.map(({ when, then }) => ({ when: map(when), then: map(then) }));
      const otherwise = map(expr.otherwise);
      const isSame = otherwise === expr.otherwise && branches.every(({ when, then }, k) => {
        return when === expr.branches[k].when && then === expr.branches[k].then;
      });
      return isSame ? expr : { ...expr, branches, otherwise };
    }
    case "in": {
      const operand = map(expr.operand), values = list(expr.values);
      return operand === expr.operand && values === expr.values
        ? expr
        : { ...expr, operand, values: values as Value[] };
    }
    default:
      return expr;
  }
}

export function columnsOf(expr: Expr, into = new Set<number>()): Set<number> {
  if (expr.kind === "column") into.add(expr.index);
  for (const child of childrenOf(expr)) columnsOf(child, into);
  return into;
}

/** Expressions are not precomputed over dictionaries larger than this. */
const PER_ENTRY_MAX = 1 << 17;

/** The only symbol column that the expression reads, if its value can be precomputed for each dictionary entry. */
export function perEntryColumn(
  expr: Expr,
  inputTypes: readonly string[],
  dictionaries: readonly (Dictionary | undefined)[],
  context: Pick<QueryContext, "functions">,
): number | undefined {
  if (expr.kind !== "call" && expr.kind !== "in" && expr.kind !== "case") return undefined;
  if (formOf(expr.type) === undefined || layoutOf(expr.type) === "symbol") return undefined;
  const columns = columnsOf(expr);
  if (columns.size !== 1) return undefined;
  const [column] = columns;
  if (layoutOf(inputTypes[column]) !== "symbol" || !isImmutable(expr, context)) return undefined;
  const dictionary = dictionaries[column];
  return dictionary !== undefined && dictionary.count <= PER_ENTRY_MAX ? column : undefined;
}

/** Equal expressions have equal keys. */
export function exprKey(expr: Expr): string {
  return JSON.stringify(
    expr,
    (
      key,
      value,
    ) => (key === "at"
      ? undefined
      : typeof value === "bigint"
      ? `${value}n`
      : typeof value === "number" && !Number.isFinite(value)
      ? String(value)
      : value),
  );
}
