/**
 * Expressions over batches, with an optional filter. Everything with a kernel form is fused into one kernel over the rows; functions
 * that only have a `batch` form run over whole columns between kernels.
 *
 *     rows → filter by kernel conditions → (arguments → batch calls)… → one kernel: the rest of the filter, and all results
 */
import { assert, withCaret } from "../errors.ts";
import type { FunctionEntry } from "../sql/functions/entry.ts";
import { childrenOf, type Expr } from "../sql/plan.ts";
import type { Dictionary } from "../storage/contract.ts";
import { layoutOf, typeOf, type Value } from "../types/mod.ts";
import { batchColumn, batchOut, functionContext, propagateNulls } from "./batch-calls.ts";
import { fillConstant, NO_DICTIONARY, repeatFirst, setValue, TextArena, Workspace } from "./columns.ts";
import { type Batch, MORSEL_ROWS, type QueryContext, type Vector } from "./contract.ts";
import { BoundKernel, flushKernelRows } from "./compiler/binding.ts";
import {
  columnsOf,
  ExpressionCompiler,
  exprKey,
  formOf,
  isEmittable,
  isText,
  mapColumns,
  perEntryColumn,
} from "./compiler/expression.ts";
import { projectKernel, type ProjectOutput } from "./compiler/project.ts";
import { i32, type IrNode } from "./compiler/ir.ts";

export interface CompiledExpressions {
  /** Valid until the next call, and as long as the batch. Without a filter, plain columns are not copied. */
  run(batch: Batch): Batch;
  close(): void;
}

export interface CompileOptions {
  /** Name of the operator in memory errors. */
  operator?: string;
  /** Approximate total number of rows, which decides whether tables over a dictionary pay off. */
  expectedRows?: number;
  /** The column whose values are `batch.rowBase + row` instead of being in memory. */
  rowIdColumn?: number;
  /** Do not precompute expressions over one symbol column for each dictionary entry. */
  rowByRow?: boolean;
}

/** A batch of a scan: rows `start` … of the columns, and the base of row ids. */
export interface ScanBatch extends Batch {
  rowBase?: bigint;
}

export function compileExpressions(
  exprs: readonly Expr[],
  /** All of them must be true. */
  predicate: Expr | readonly Expr[] | undefined,
  inputTypes: readonly string[],
  context: QueryContext,
  options: CompileOptions = {},
): CompiledExpressions {
  const all = predicate === undefined ? [] : "kind" in predicate ? [predicate] : predicate;
  return new Compiled(exprs, all.flatMap((p) => conjuncts(p, context)), inputTypes, context, options);
}

const evaluated = new WeakMap<readonly Expr[], { context: QueryContext; compiled: CompiledExpressions }>();

/**
 * Evaluates expressions over one batch. Kernels are cached for the same list. Valid until the next call with that list.
 */
export function evaluate(exprs: readonly Expr[], batch: Batch, context: QueryContext): Batch {
  let known = evaluated.get(exprs);
  if (known?.context !== context) {
    const types = batch.columns.map((column) => column.type);
    evaluated.set(exprs, known = { context, compiled: compileExpressions(exprs, undefined, types, context) });
  }
  return known.compiled.run(batch);
}

/** The operands of an AND. */
export function conjuncts(predicate: Expr, context: Pick<QueryContext, "functions">): Expr[] {
  if (predicate.kind === "call" && context.functions.resolve(predicate.function).entry.name === "and") {
    return predicate.args.flatMap((arg) => conjuncts(arg, context));
  }
  return [predicate];
}

/** The dictionary of an expression of type SYMBOL. */
export function dictionaryOf(expr: Expr, dictionaries: readonly (Dictionary | undefined)[]): Dictionary | undefined {
  if (layoutOf(expr.type) !== "symbol") return undefined;
  if (expr.kind === "column") return dictionaries[expr.index];
  for (const child of childrenOf(expr)) {
    const found = dictionaryOf(child, dictionaries);
    if (found !== undefined) return found;
  }
  return NO_DICTIONARY;
}

/** A column: an input, or (numbered after the inputs) the result of a stage. */
type Slot = number;

interface Step {
  run(state: State): void;
}

interface State {
  vectors: (Vector | undefined)[];
  rowCount: number;
  rowBase: bigint;
}

/** A balanced tree, as trees are processed recursively. */
function allOf(nodes: IrNode[]): IrNode {
  if (nodes.length === 1) return nodes[0];
  const middle = nodes.length >> 1;
  return i32.and(allOf(nodes.slice(0, middle)), allOf(nodes.slice(middle)));
}

class Compiled implements CompiledExpressions {
  private stages?: Stages;

  constructor(
    private readonly exprs: readonly Expr[],
    private readonly predicates: readonly Expr[],
    private readonly inputTypes: readonly string[],
    private readonly context: QueryContext,
    private readonly options: CompileOptions,
  ) {}

  run(batch: ScanBatch): Batch {
    const dictionaries = batch.columns.map((column) => column.dictionary);
    if (this.stages === undefined || !this.stages.fits(dictionaries)) {
      this.stages?.release();
      const expectedRows = Math.max(batch.rowCount, this.options.expectedRows ?? 0);
      this.stages = new Stages(this.exprs, this.predicates, this.inputTypes, dictionaries, this.context, {
        ...this.options,
        expectedRows,
      });
    }
    return this.stages.run(batch);
  }

  close(): void {
    this.stages?.release();
    this.stages = undefined;
    flushKernelRows(this.context.heap.i64);
  }
}

/** The steps for each batch, compiled for the dictionaries of the batch's symbols. */
class Stages {
  private readonly types: string[];
  private readonly dictionaries: (Dictionary | undefined)[];
  private readonly steps: Step[] = [];
  private readonly space: Workspace;
  private readonly results: Slot[] = [];
  private rowOffset = 0;
  private readonly made = new Map<string, Slot>();
  /** Slots that the last kernel fills. */
  private readonly computed: { slot: Slot; expr: Expr }[] = [];
  /** As in the options until a filter has moved rows; from then on it is in memory like other columns. */
  private rowIdColumn: number | undefined;
  /** Columns with the same value in all rows. */
  private readonly constantSlots = new Set<Slot>();

  constructor(
    exprs: readonly Expr[],
    predicates: readonly Expr[],
    private readonly inputTypes: readonly string[],
    private readonly inputDictionaries: readonly (Dictionary | undefined)[],
    private readonly context: QueryContext,
    private readonly options: CompileOptions,
  ) {
    this.types = [...inputTypes];
    this.dictionaries = [...inputDictionaries];
    this.rowIdColumn = options.rowIdColumn;
    this.space = Workspace.of(context, options.operator ?? "project");
    const emittable = (expr: Expr) => this.emittable(expr);
    const simple = predicates.filter(emittable), complex = predicates.filter((p) => !emittable(p));
    const plainResult = (expr: Expr) => expr.kind === "column" || emittable(expr);
    const staged = complex.length > 0 || !exprs.every(plainResult);
    const needed = new Set<number>();
    for (const expr of [...complex, ...exprs]) columnsOf(expr, needed);
    // Drop rows that do not pass before the slow calls.
    if (staged && simple.length > 0) this.filterStep(simple, [...needed].sort((a, b) => a - b));
    const lastPredicates = (staged ? complex : simple).map((p) => (emittable(p) ? p : this.materialise(p)));
    const outputs = exprs.map((expr) => this.materialise(expr));
    this.finalStep(lastPredicates, outputs);
  }

  fits(dictionaries: readonly (Dictionary | undefined)[]): boolean {
    return dictionaries.every((dictionary, k) => {
      const mine = this.inputDictionaries[k];
      return dictionary === mine ||
        (dictionary !== undefined && mine !== undefined && dictionary.entries === mine.entries &&
          dictionary.count === mine.count);
    });
  }

  run(batch: ScanBatch): Batch {
    const state: State = { vectors: [...batch.columns], rowCount: batch.rowCount, rowBase: batch.rowBase ?? 0n };
    for (const step of this.steps) {
      if (state.rowCount === 0) break;
      step.run(state);
    }
    this.rowOffset += batch.rowCount;
    if (state.rowCount === 0) return { rowCount: 0, columns: this.results.map((slot) => this.vectorOf(slot, 0)) };
    return { rowCount: state.rowCount, columns: this.results.map((slot) => state.vectors[slot]!) };
  }

  release(): void {
    this.space.release();
  }

  private vectorOf(slot: Slot, address: number): Vector {
    const type = this.types[slot];
    return { type, address, dictionary: layoutOf(type) === "symbol" ? this.dictionaries[slot] : undefined };
  }

  private emittable(expr: Expr): boolean {
    return isEmittable(expr, this.types, this.context, (e) => this.isPerEntry(e));
  }

  private isPerEntry(expr: Expr): boolean {
    return isPerEntry(expr, this.types, this.dictionaries, this.context, this.options);
  }

  private slot(type: string, dictionary?: Dictionary): Slot {
    this.dictionaries.push(dictionary);
    return this.types.push(type) - 1;
  }

  private column(slot: Slot): Expr {
    return { kind: "column", index: slot, type: this.types[slot] };
  }

  /** Replaces every part without a kernel form by a column that a step makes. */
  private materialise(expr: Expr): Expr {
    if (expr.kind === "column" || expr.kind === "constant" || this.emittable(expr)) return expr;
    const key = exprKey(expr);
    const known = this.isRepeatable(expr) ? this.made.get(key) : undefined;
    if (known !== undefined) return this.column(known);
    let result: Expr;
    if (expr.kind === "call") {
      const { entry, types } = this.context.functions.resolve(expr.function);
      if (
        entry.emit !== undefined && formOf(expr.type) !== undefined && types.every((type) => formOf(type) !== undefined)
      ) {
        result = { ...expr, args: expr.args.map((arg) => this.materialise(arg)) };
        if (this.emittable(result)) return result;
      }
      result = this.column(this.batchStep(expr, entry, types));
    } else if (expr.kind === "case") {
      const parts = expr.branches.map(({ when, then }) => ({
        when: this.materialise(when),
        then: this.materialise(then),
      }));
      const otherwise = this.materialise(expr.otherwise);
      const fused: Expr = { ...expr, branches: parts, otherwise };
      if (this.emittable(fused)) return fused;
      result = this.column(this.caseStep(parts, otherwise, expr.type));
    } else if (expr.kind === "in") {
      const operand = this.materialise(expr.operand);
      const fused: Expr = { ...expr, operand };
      if (this.emittable(fused)) return fused;
      result = this.column(this.wideMembershipStep(operand, expr.values));
    } else throw new Error("a parameter is replaced before its plan runs");
    if (result.kind === "column") this.made.set(key, result.index);
    return result;
  }

  /** True if equal calls may share one evaluation; not for random numbers. */
  private isRepeatable(expr: Expr): boolean {
    if (expr.kind === "call" && this.context.functions.resolve(expr.function).entry.volatility === "volatile") {
      return false;
    }
    return childrenOf(expr).every((child) => this.isRepeatable(child));
  }

  // ---- steps

  /** Drops rows and moves the columns `keep` together. */
  private filterStep(predicates: Expr[], keep: number[]): void {
    const outputs = keep.map((slot) => ({ slot, expr: this.column(slot) }));
    this.kernelStep(predicates, outputs);
    this.rowIdColumn = undefined;
  }

  private finalStep(predicates: Expr[], outputs: Expr[]): void {
    const bySlot = new Map<string, Slot>();
    outputs.forEach((expr, k) => {
      // Without a filter, input columns and results of batch calls are output directly.
      const isRowId = expr.kind === "column" && expr.index === this.rowIdColumn;
      if (predicates.length === 0 && expr.kind === "column" && !isRowId) {
        this.results[k] = expr.index;
        return;
      }
      const key = this.isRepeatable(expr) ? exprKey(expr) : `#${k}`;
      let slot = bySlot.get(key);
      if (slot === undefined) {
        slot = this.slot(expr.type, dictionaryOf(expr, this.dictionaries));
        bySlot.set(key, slot);
        this.computed.push({ slot, expr });
      }
      this.results[k] = slot;
    });
    if (this.computed.length > 0 || predicates.length > 0) this.kernelStep(predicates, this.computed);
  }

  /**
   * One kernel: a filter over all rows, and the outputs for those that pass. An output slot may overwrite one of its
   * inputs.
   */
  private kernelStep(predicates: Expr[], outputs: { slot: Slot; expr: Expr; asText?: boolean }[]): void {
    const { context, space } = this;
    const compiler = compilerFor([...this.types], [...this.dictionaries], context, space, {
      ...this.options,
      rowIdColumn: this.rowIdColumn,
    });
    const predicate = predicates.length === 0 ? undefined : allOf(predicates.map((p) => compiler.lower(p)));
    // Constant 128-bit outputs are filled, not computed.
    const constants: { slot: Slot; value: Value }[] = [];
    const wide: { slot: Slot; source: Slot; k: number }[] = [];
    const kernelOutputs: { slot: Slot; output: ProjectOutput }[] = [];
    for (const { slot, expr, asText } of outputs) {
      const type = asText ? "STRING" : expr.type;
      const form = formOf(type);
      if (expr.kind === "constant" && (form === undefined || predicate === undefined)) {
        constants.push({ slot, value: expr.value });
      } else if (form === undefined) {
        assert(expr.kind === "column", "wide values are columns or constants");
        wide.push({ slot, source: expr.index, k: kernelOutputs.length });
        kernelOutputs.push({ slot, output: { kind: "copy", width: typeOf(type).width } });
      } else kernelOutputs.push({ slot, output: { kind: "value", form, node: compiler.value(expr, type) } });
    }
    const buffers = new Map(outputs.map(({ slot }) => [slot, new Buffer(space, this.types[slot])]));
    const arena = new TextArena(space);
    let bound: BoundKernel | undefined;
    if (kernelOutputs.length > 0 || predicate !== undefined) {
      const kernel = projectKernel(context.heap.memory, compiler.inputs, predicate, kernelOutputs.map((o) => o.output));
      bound = new BoundKernel(kernel.run, kernel.cells, compiler.inputs, context, space, kernel.cells.count);
    }
    const filled = new Map<Slot, number>();
    this.steps.push({
      run: (state) => {
        const inputRows = state.rowCount;
        if (bound !== undefined) {
          bound.setColumns(state.vectors as Vector[], state.rowBase);
          kernelOutputs.forEach(({ slot }, k) =>
            bound.setI32(bound.cells[`out${k}`], buffers.get(slot)!.reserve(inputRows))
          );
          for (const { source, k } of wide) bound.setI32(bound.cells[`copy${k}`], state.vectors[source]!.address);
          state.rowCount = bound.run(0, inputRows);
        }
        for (const { slot, value } of constants) {
          const address = buffers.get(slot)!.reserve(state.rowCount);
          if ((filled.get(slot) ?? 0) < state.rowCount) {
            fillConstant(context.heap, this.types[slot], address, state.rowCount, value, arena);
            filled.set(slot, buffers.get(slot)!.rows);
            fillConstant(context.heap, this.types[slot], address, buffers.get(slot)!.rows, value, arena);
          }
        }
        for (const { slot } of outputs) state.vectors[slot] = this.vectorOf(slot, buffers.get(slot)!.address);
      },
    });
  }

  /** The column of an argument: a slot, or a constant. Symbols become text. */
  private argument(
    expr: Expr,
    pending: { slot: Slot; expr: Expr; asText?: boolean }[],
  ): { slot: Slot; constant?: Expr & { kind: "constant" }; dictionary?: Dictionary } {
    const symbol = layoutOf(expr.type) === "symbol";
    if (expr.kind === "constant") {
      return { slot: this.slot(symbol ? "STRING" : expr.type), constant: symbol ? { ...expr, type: "STRING" } : expr };
    }
    const whole = this.materialise(expr);
    if (whole.kind === "column" && !symbol && whole.index !== this.rowIdColumn) return { slot: whole.index };
    const slot = this.slot(symbol ? "STRING" : expr.type);
    pending.push({ slot, expr: whole, asText: symbol });
    return { slot, dictionary: symbol ? dictionaryOf(whole, this.dictionaries) : undefined };
  }

  private batchStep(expr: Expr & { kind: "call" }, entry: FunctionEntry, types: string[]): Slot {
    assert(entry.batch !== undefined, `${expr.function} runs in a kernel or over batches`);
    const { context, space } = this;
    const pending: { slot: Slot; expr: Expr; asText?: boolean }[] = [];
    const args = expr.args.map((arg) => this.argument(arg, pending));
    if (pending.length > 0) this.kernelStep([], pending);
    const constants = args.map((
      arg,
    ) => (arg.constant === undefined ? undefined : new ConstantColumn(context, space, arg.constant)));
    const out = this.slot(expr.type);
    const buffer = new Buffer(space, expr.type);
    const arena = new TextArena(space);
    const call = functionContext(context, expr.at);
    const batch = entry.batch;
    // Calls with long constant texts are not evaluated during planning, but here once for each batch.
    const isConstant = entry.volatility !== "volatile" &&
      args.every((arg) => arg.constant !== undefined || this.constantSlots.has(arg.slot));
    if (isConstant) this.constantSlots.add(out);
    const { width } = typeOf(expr.type);
    this.steps.push({
      run: (state) => {
        context.poll();
        call.rowOffset = this.rowOffset;
        const rowCount = isConstant ? Math.min(1, state.rowCount) : state.rowCount;
        const columns = args.map((arg, k) => {
          const address = constants[k]?.reserve(state.rowCount) ?? state.vectors[arg.slot]!.address;
          return batchColumn(
            context,
            types[k] === undefined ? this.types[arg.slot] : types[k],
            this.types[arg.slot],
            address,
            rowCount,
            arg.constant?.value,
            arg.constant !== undefined,
            arg.dictionary,
          );
        });
        arena.release();
        const address = buffer.reserve(state.rowCount);
        const target = batchOut(context, expr.type, address, rowCount, arena);
        try {
          batch(columns, target, rowCount, call);
        } catch (error) {
          throw withCaret(error, expr.at);
        }
        if (entry.nulls === "propagate") propagateNulls(context, columns, target, rowCount);
        if (isConstant) repeatFirst(context.heap, address, width, state.rowCount);
        state.vectors[out] = this.vectorOf(out, address);
      },
    });
    return out;
  }

  /** CASE over columns without a kernel form: each branch is computed as a whole column, then rows are picked. */
  private caseStep(branches: { when: Expr; then: Expr }[], otherwise: Expr, type: string): Slot {
    const { context, space } = this;
    const pending: { slot: Slot; expr: Expr; asText?: boolean }[] = [];
    const columnOf = (expr: Expr, tag: string) => {
      const arg = this.argument(expr, pending);
      // A bare NULL has the type of the whole expression.
      return {
        ...arg,
        filled: arg.constant && new ConstantColumn(context, space, { value: arg.constant.value, type: tag }),
      };
    };
    const parts = branches.map(({ when, then }) => ({ when: columnOf(when, "BOOLEAN"), then: columnOf(then, type) }));
    const last = columnOf(otherwise, type);
    if (pending.length > 0) this.kernelStep([], pending);
    const out = this.slot(type);
    const buffer = new Buffer(space, type);
    const { width } = typeOf(type);
    this.steps.push({
      run: (state) => {
        context.poll();
        const { heap } = context;
        const addressOf = (part: ReturnType<typeof columnOf>) =>
          part.filled?.reserve(state.rowCount) ?? state.vectors[part.slot]!.address;
        const whens = parts.map((part) => addressOf(part.when)),
          thens = parts.map((part) => addressOf(part.then)),
          rest = addressOf(last);
        const address = buffer.reserve(state.rowCount);
        for (let row = 0; row < state.rowCount; row++) {
          let k = 0;
          while (k < whens.length && heap.i8[whens[k] + row] === 0) k++;
          const from = (k < whens.length ? thens[k] : rest) + row * width;
          heap.u8.copyWithin(address + row * width, from, from + width);
        }
        state.vectors[out] = this.vectorOf(out, address);
      },
    });
    return out;
  }

  private wideMembershipStep(operand: Expr, values: readonly Value[]): Slot {
    const { context, space } = this;
    const pending: { slot: Slot; expr: Expr }[] = [];
    const arg = this.argument(operand, pending);
    if (pending.length > 0) this.kernelStep([], pending);
    const filled = arg.constant && new ConstantColumn(context, space, arg.constant);
    const out = this.slot("BOOLEAN");
    const buffer = new Buffer(space, "BOOLEAN");
    const { heap } = context, { width } = typeOf(operand.type);
    // Values of 128 and 256 bits are equal if their bytes are.
    const list = new Buffer(space, operand.type).reserve(values.length), arena = new TextArena(space);
    const bytesAt = (at: number) => heap.u8.subarray(at, at + width).toHex();
    const wanted = new Set(values.map((value, k) => {
      setValue(heap, operand.type, list, k, value, arena);
      return bytesAt(list + k * width);
    }));
    this.steps.push({
      run: (state) => {
        context.poll();
        const address = buffer.reserve(state.rowCount);
        const from = filled?.reserve(state.rowCount) ?? state.vectors[arg.slot]!.address;
        for (let row = 0; row < state.rowCount; row++) {
          heap.u8[address + row] = wanted.has(bytesAt(from + row * width)) ? 1 : 0;
        }
        state.vectors[out] = this.vectorOf(out, address);
      },
    });
    return out;
  }
}

/** True if it is precomputed once for each entry of a symbol's dictionary. */
export function isPerEntry(
  expr: Expr,
  types: readonly string[],
  dictionaries: readonly (Dictionary | undefined)[],
  context: Pick<QueryContext, "functions">,
  options: CompileOptions,
): boolean {
  if (options.rowByRow) return false;
  const column = perEntryColumn(expr, types, dictionaries, context);
  return column !== undefined && dictionaries[column]!.count <= Math.max(256, 2 * (options.expectedRows ?? 0));
}

function compilerFor(
  types: readonly string[],
  dictionaries: readonly (Dictionary | undefined)[],
  context: QueryContext,
  space: Workspace,
  options: CompileOptions,
): ExpressionCompiler {
  const perEntry = (expr: Expr, column: number, dictionary: Dictionary) =>
    isPerEntry(expr, types, dictionaries, context, options)
      ? entryTable(expr, types[column], dictionary, context, space, options)
      : undefined;
  return new ExpressionCompiler(types, dictionaries, context, space, perEntry, options.rowIdColumn);
}

/** Values of an expression for all entries of a dictionary, that of code -1 first. */
function entryTable(
  expr: Expr,
  symbolType: string,
  dictionary: Dictionary,
  context: QueryContext,
  space: Workspace,
  options: CompileOptions,
): number {
  const { heap } = context;
  const width = typeOf(expr.type).width, count = dictionary.count + 1;
  const table = space.allocate(count * width);
  const codes = space.allocate(Math.min(count, MORSEL_ROWS) * 4);
  const alone = mapColumns(expr, (_, type) => ({ kind: "column", index: 0, type }));
  const compiled = compileExpressions([alone], undefined, [symbolType], context, {
    rowByRow: true,
    operator: options.operator,
  });
  const arena = new TextArena(space);
  try {
    for (let from = 0; from < count; from += MORSEL_ROWS) {
      const rowCount = Math.min(MORSEL_ROWS, count - from);
      for (let k = 0; k < rowCount; k++) heap.i32[(codes >>> 2) + k] = from + k - 1;
      const out = compiled.run({ rowCount, columns: [{ type: symbolType, address: codes, dictionary }] });
      const target = table + from * width;
      heap.u8.copyWithin(target, out.columns[0].address, out.columns[0].address + rowCount * width);
      if (isText(expr.type)) arena.adopt(target, rowCount);
    }
  } finally {
    compiled.close();
  }
  return table;
}

/** True if one kernel can compute all predicates and expressions, or output them unchanged (columns of 128 bits). */
export function isFusable(
  exprs: readonly Expr[],
  predicates: readonly Expr[],
  types: readonly string[],
  dictionaries: readonly (Dictionary | undefined)[],
  context: Pick<QueryContext, "functions">,
  options: CompileOptions,
): boolean {
  const emittable = (expr: Expr) =>
    isEmittable(expr, types, context, (e) => isPerEntry(e, types, dictionaries, context, options));
  return predicates.every(emittable) && exprs.every((expr) => expr.kind === "column" || emittable(expr));
}

/** A compiler for a caller's own kernel over fusable expressions, and the IR of its predicates. */
export function fuse(
  predicates: readonly Expr[],
  types: readonly string[],
  dictionaries: readonly (Dictionary | undefined)[],
  context: QueryContext,
  space: Workspace,
  options: CompileOptions,
): { compiler: ExpressionCompiler; predicate: IrNode | undefined } {
  const compiler = compilerFor(types, dictionaries, context, space, options);
  const nodes = predicates.flatMap((p) => conjuncts(p, context)).map((p) => compiler.lower(p));
  return { compiler, predicate: nodes.length === 0 ? undefined : allOf(nodes) };
}

/** The memory of one output column, which grows with the batches. */
class Buffer {
  address = 0;
  rows = 0;
  private readonly width: number;

  constructor(private readonly space: Workspace, type: string) {
    this.width = typeOf(type).width;
  }

  reserve(rowCount: number): number {
    if (rowCount <= this.rows && this.address !== 0) return this.address;
    if (this.address !== 0) this.space.free(this.address);
    this.rows = Math.max(64, 2 ** Math.ceil(Math.log2(Math.max(1, rowCount))));
    return this.address = this.space.allocate(this.rows * this.width + 16); // lanes may read and write beyond the last row
  }
}

/** A column of one value, filled as far as batches required so far. */
class ConstantColumn {
  private readonly buffer: Buffer;
  private filled = 0;
  private readonly arena: TextArena;

  constructor(
    private readonly context: QueryContext,
    space: Workspace,
    private readonly expr: { value: Value; type: string },
  ) {
    this.buffer = new Buffer(space, expr.type);
    this.arena = new TextArena(space);
  }

  reserve(rowCount: number): number {
    const address = this.buffer.reserve(rowCount);
    if (this.filled < rowCount) {
      this.filled = this.buffer.rows;
      fillConstant(this.context.heap, this.expr.type, address, this.filled, this.expr.value, this.arena);
    }
    return address;
  }
}
