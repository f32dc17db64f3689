/**
 * Chooses the steps that compute expressions over a batch: which parts one kernel computes, which become columns first,
 * and in which order. The choice also depends on symbols' dictionaries, which some inputs provide only with their rows.
 */
import { childrenOf, type Expr } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { layoutOf, type Value } from "../../types/mod.ts";
import { columnsOf, exprKey, isEmittable, mapChildren } from "../compiler/expression.ts";
import type { FunctionRegistry } from "../contract.ts";
import type { CompileOptions } from "../expressions/options.ts";
import { dictionaryOf, isPerEntry } from "../expressions/rules.ts";
import { hasKernel, isVolatile } from "./functions.ts";

/** A column: an input, or (numbered after the inputs) the result of a step. */
export type Slot = number;

/** A column that a kernel fills; symbols become text if `asText`. */
export interface Output {
  slot: Slot;
  expr: Expr;
  asText?: boolean;
}

/** An argument of a batch function, CASE or IN. */
export interface Argument {
  slot: Slot;
  constant?: Expr & { kind: "constant" };
  dictionary?: Dictionary;
}

export type StageStep =
  /** A filter over all rows, and the outputs for those that pass. An output may overwrite one of the inputs. */
  | { kind: "kernel"; predicates: readonly Expr[]; outputs: readonly Output[]; rowIdColumn?: number }
  /** A batch function over whole columns. `isConstant`: its value is the same in all rows. */
  | { kind: "batch"; call: Expr & { kind: "call" }; args: Argument[]; out: Slot; isConstant: boolean }
  | { kind: "case"; branches: { when: Argument; then: Argument }[]; otherwise: Argument; type: string; out: Slot }
  | { kind: "in"; operand: Argument; type: string; values: readonly Value[]; out: Slot };

export interface StagePlan {
  /** By slot. */
  types: readonly string[];
  /** By slot. */
  dictionaries: readonly (Dictionary | undefined)[];
  steps: readonly StageStep[];
  /** The slots of the expressions. */
  results: readonly Slot[];
}

/** `dictionaries`: by input column. All predicates must be true. */
export function stagePlan(
  exprs: readonly Expr[],
  predicates: readonly Expr[],
  types: readonly string[],
  dictionaries: readonly (Dictionary | undefined)[],
  functions: FunctionRegistry,
  options: CompileOptions,
): StagePlan {
  return new Planner(types, dictionaries, { functions }, options).plan(exprs, predicates);
}

type CaseExpr = Expr & { kind: "case" };
const TRUE: Expr = { kind: "constant", value: true, type: "BOOLEAN" };

class Planner {
  private readonly types: string[];
  private readonly dictionaries: (Dictionary | undefined)[];
  private readonly steps: StageStep[] = [];
  private readonly made = new Map<string, Slot>();
  /** The column of row ids. A filter that moves rows turns it into an ordinary column in memory. */
  private rowIdColumn: number | undefined;
  /** Columns with the same value in all rows. */
  private readonly constantSlots = new Set<Slot>();

  constructor(
    types: readonly string[],
    dictionaries: readonly (Dictionary | undefined)[],
    private readonly facts: { functions: FunctionRegistry },
    private readonly options: CompileOptions,
  ) {
    this.types = [...types];
    this.dictionaries = [...dictionaries];
    this.rowIdColumn = options.rowIdColumn;
  }

  plan(exprs: readonly Expr[], predicates: readonly Expr[]): StagePlan {
    const simple = predicates.filter((p) => this.emittable(p)), complex = predicates.filter((p) => !this.emittable(p));
    const plainResult = (expr: Expr) => expr.kind === "column" || this.emittable(expr);
    const staged = complex.length > 0 || !exprs.every(plainResult);
    const needed = new Set<number>();
    for (const expr of [...complex, ...exprs]) columnsOf(expr, needed);
    // Drop rows that do not pass before the slow calls.
    if (staged && simple.length > 0) this.filter(simple, [...needed].sort((a, b) => a - b));
    let conditions = staged ? [] : simple;
    complex.forEach((predicate, k) => {
      // A call may fail for a row that an earlier condition leaves out: y != 0 and x / y > 1.
      if (conditions.length > 0 && this.canFail(predicate)) {
        this.filter(conditions, this.readBy([...complex.slice(k), ...exprs]));
        conditions = [];
      }
      conditions.push(this.materialise(predicate));
    });
    if (conditions.length > 0 && !exprs.every(plainResult)) {
      this.filter(conditions, this.readBy(exprs));
      conditions = [];
    }
    const outputs = exprs.map((expr) => this.materialise(expr));
    const results = this.finish(conditions, outputs);
    return { types: this.types, dictionaries: this.dictionaries, steps: this.steps, results };
  }

  /** The slots that the expressions read: inputs, and parts that steps have made. Other parts are no longer known. */
  private readBy(exprs: readonly Expr[]): Slot[] {
    const read = new Set<Slot>(), kept = new Map<string, Slot>();
    const visit = (expr: Expr): void => {
      const key = exprKey(expr), slot = this.made.get(key);
      if (slot !== undefined) {
        kept.set(key, slot);
        read.add(slot);
      } else if (expr.kind === "column") read.add(expr.index);
      else childrenOf(expr).forEach(visit);
    };
    exprs.forEach(visit);
    this.made.clear();
    for (const [key, slot] of kept) this.made.set(key, slot);
    return [...read].sort((a, b) => a - b);
  }

  private emittable(expr: Expr): boolean {
    return isEmittable(
      expr,
      this.types,
      this.facts,
      (e) => isPerEntry(e, this.types, this.dictionaries, this.facts, this.options),
    );
  }

  private slot(type: string, dictionary?: Dictionary): Slot {
    // Sparse above the inputs: an input without rows may have fewer dictionaries than columns.
    const slot = this.types.push(type) - 1;
    this.dictionaries[slot] = dictionary;
    return slot;
  }

  private column(slot: Slot): Expr {
    return { kind: "column", index: slot, type: this.types[slot]! };
  }

  /** Replaces every part without a kernel form by a column that a step makes. */
  private materialise(expr: Expr): Expr {
    if (expr.kind === "column" || expr.kind === "constant" || this.emittable(expr)) return expr;
    const key = exprKey(expr);
    const known = isVolatile(expr, this.facts) ? undefined : this.made.get(key);
    if (known !== undefined) return this.column(known);
    const result = this.fusedOrMade(expr);
    if (result.kind === "column") this.made.set(key, result.index);
    return result;
  }

  private fusedOrMade(expr: Expr): Expr {
    if (expr.kind === "call") {
      if (hasKernel(expr, this.facts)) {
        const { entry } = this.facts.functions.resolve(expr.function);
        const isCondition = entry.name === "and" || entry.name === "or";
        const args = isCondition
          ? this.sides(expr.args, entry.name === "or")
          : expr.args.map((arg) => this.materialise(arg));
        const call = { ...expr, args };
        return this.emittable(call) ? call : this.column(this.batch(call));
      }
      return this.column(this.batch(expr));
    }
    if (expr.kind === "case") {
      const { branches, otherwise } = this.choices(expr);
      const fused: Expr = { ...expr, branches, otherwise };
      return this.emittable(fused) ? fused : this.column(this.choice(branches, otherwise, expr.type));
    }
    if (expr.kind === "in") {
      const operand = this.materialise(expr.operand);
      const fused: Expr = { ...expr, operand };
      return this.emittable(fused) ? fused : this.column(this.membership(operand, expr.values));
    }
    throw new Error("a parameter must be replaced before its plan runs");
  }

  private canFail(expr: Expr): boolean {
    const isFallible = expr.kind === "call" && this.facts.functions.resolve(expr.function).entry.fallible !== undefined;
    return isFallible || childrenOf(expr).some((child) => this.canFail(child));
  }

  /**
   * The parts of a CASE. Steps compute all rows, but CASE evaluates a condition only where no earlier one is true, and a value only
   * where its own is. In other rows, calls that can fail get a null.
   */
  private choices({ branches, otherwise }: CaseExpr): Pick<CaseExpr, "branches" | "otherwise"> {
    const parts = [...branches.flatMap(({ when, then }) => [when, then]), otherwise];
    const lastFallible = parts.findLastIndex((part) => this.canFail(part));
    /** The column that tells whether an earlier condition is true. */
    let passed: Expr | undefined;
    const made = branches.map(({ when: condition, then: value }, k) => {
      const when = this.materialise(this.guarded(condition, passed));
      const then = this.materialise(this.guarded(value, passed, when));
      if (2 * k + 1 < lastFallible) {
        const either: Expr = passed === undefined
          ? when
          : { kind: "case", branches: [{ when: passed, then: TRUE }], otherwise: when, type: "BOOLEAN" };
        passed = this.column(this.args((argument) => argument(either)).slot);
      }
      return { when, then };
    });
    return { branches: made, otherwise: this.materialise(this.guarded(otherwise, passed)) };
  }

  /** The sides of AND or OR, which evaluate the right one only where the left one does not decide. */
  private sides([first, second]: readonly Expr[], isOr: boolean): Expr[] {
    const left = this.materialise(first!);
    return [left, this.materialise(this.guarded(second!, isOr ? left : undefined, isOr ? undefined : left))];
  }

  /** Calls that can fail get a null where `passed` is true, or `when` is not. */
  private guarded(expr: Expr, passed: Expr | undefined, when?: Expr): Expr {
    if ((passed === undefined && when === undefined) || !this.canFail(expr)) return expr;
    const guard = (part: Expr): Expr => {
      if (part.kind !== "call") return mapChildren(part, guard);
      const { fallible } = this.facts.functions.resolve(part.function).entry;
      return { ...part, args: part.args.map((arg, k) => k === fallible ? nullable(guard(arg)) : guard(arg)) };
    };
    const nullable = (arg: Expr): Expr => {
      const type = layoutOf(arg.type) === "symbol" ? "STRING" : arg.type;
      const none: Expr = { kind: "constant", value: null, type };
      const before = passed === undefined ? [] : [{ when: passed, then: none }];
      return when === undefined
        ? { kind: "case", branches: before, otherwise: arg, type }
        : { kind: "case", branches: [...before, { when, then: arg }], otherwise: none, type };
    };
    return guard(expr);
  }

  private batch(call: Expr & { kind: "call" }): Slot {
    const args = this.args((argument) => call.args.map(argument));
    const isConstant = !isVolatile({ ...call, args: [] }, this.facts) &&
      args.every((arg) => arg.constant !== undefined || this.constantSlots.has(arg.slot));
    const out = this.slot(call.type);
    if (isConstant) this.constantSlots.add(out);
    this.steps.push({ kind: "batch", call, args, out, isConstant });
    return out;
  }

  private choice(branches: readonly { when: Expr; then: Expr }[], otherwise: Expr, type: string): Slot {
    const made = this.args((argument) => ({
      branches: branches.map(({ when, then }) => ({ when: argument(when), then: argument(then) })),
      otherwise: argument(otherwise),
    }));
    const out = this.slot(type);
    this.steps.push({ kind: "case", ...made, type, out });
    return out;
  }

  private membership(operand: Expr, values: readonly Value[]): Slot {
    const arg = this.args((argument) => argument(operand));
    const out = this.slot("BOOLEAN");
    this.steps.push({ kind: "in", operand: arg, type: operand.type, values, out });
    return out;
  }

  /** The columns of arguments, after one kernel that computes those that are not columns yet. */
  private args<T>(make: (argument: (expr: Expr) => Argument) => T): T {
    const pending: Output[] = [];
    const made = make((expr) => this.argument(expr, pending));
    if (pending.length > 0) this.kernel([], pending);
    return made;
  }

  /** A slot, or a constant. Symbols become text. */
  private argument(expr: Expr, pending: Output[]): Argument {
    const isSymbol = layoutOf(expr.type) === "symbol";
    if (expr.kind === "constant") {
      const constant = isSymbol ? { ...expr, type: "STRING" } : expr;
      return { slot: this.slot(constant.type), constant };
    }
    const whole = this.materialise(expr);
    if (whole.kind === "column" && !isSymbol && whole.index !== this.rowIdColumn) return { slot: whole.index };
    const slot = this.slot(isSymbol ? "STRING" : expr.type);
    pending.push({ slot, expr: whole, asText: isSymbol });
    return { slot, dictionary: isSymbol ? dictionaryOf(whole, this.dictionaries) : undefined };
  }

  private kernel(predicates: readonly Expr[], outputs: readonly Output[]): void {
    this.steps.push({ kind: "kernel", predicates, outputs, rowIdColumn: this.rowIdColumn });
  }

  /** Drops rows and moves the columns `keep` together. */
  private filter(predicates: readonly Expr[], keep: readonly number[]): void {
    this.kernel(predicates, keep.map((slot) => ({ slot, expr: this.column(slot) })));
    this.rowIdColumn = undefined;
  }

  /** The last kernel: the remaining conditions, and all results that are not columns yet. */
  private finish(predicates: readonly Expr[], exprs: readonly Expr[]): Slot[] {
    const bySlot = new Map<string, Slot>(), outputs: Output[] = [];
    const results = exprs.map((expr, k) => {
      // Without a filter, input columns and results of batch calls are output directly.
      const isRowId = expr.kind === "column" && expr.index === this.rowIdColumn;
      if (predicates.length === 0 && expr.kind === "column" && !isRowId) return expr.index;
      const key = isVolatile(expr, this.facts) ? `#${k}` : exprKey(expr), known = bySlot.get(key);
      if (known !== undefined) return known;
      const slot = this.slot(expr.type, dictionaryOf(expr, this.dictionaries));
      bySlot.set(key, slot);
      outputs.push({ slot, expr });
      return slot;
    });
    if (outputs.length > 0 || predicates.length > 0) this.kernel(predicates, outputs);
    return results;
  }
}
