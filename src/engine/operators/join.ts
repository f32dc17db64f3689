/**
 * Joins: the right side is kept, with an index over its keys, and the left side's rows look their partners up. Without keys every right
 * row is a partner, so a cross join and a join on an inequality are the same. Rows come in the order of the left rows, then of the
 * right rows; right rows without a partner come last.
 *
 * A join is no operator of its own but the base of a pipeline: what is filtered and worked out over it reads the left side's columns and
 * the right side's, and only those are fetched that are read.
 */
import type { Column, Expr, JoinNode } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { layoutOf } from "../../types/mod.ts";
import { NO_DICTIONARY, OutputColumns, sameDictionary, Workspace } from "../columns.ts";
import { BoundKernel, flushKernelRows } from "../compiler/binding.ts";
import { ExpressionCompiler, formOf, mapColumns } from "../compiler/expression.ts";
import { bucketBytes, indexKernel, rangeKernel } from "../compiler/join.ts";
import { MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { columnsOfBase, dictionariesOf, openBase, planOf, scanOf } from "./base.ts";
import { asPipeline } from "./filter-project.ts";
import { keepAll, type KeptRows } from "./input.ts";
import { joinKeyOf, JoinReader, keepsLeftRows, noneOf, translate } from "./join-probe.ts";
import { isVolatile, Pipeline } from "./pipeline.ts";
import type { BasePlan, JoinBase, JoinIndex, JoinProbe, KeyMode, RowReader, Rows } from "./base-plan.ts";
import { type Bound, BOUNDED } from "./morsels.ts";

/** Slots of a dense index: so many, or so many a row. A hash index takes as much memory. */
const DENSE_SLOTS = 65_536;
const DENSE_SLOTS_PER_ROW = 8;
/** Dictionaries up to so many entries, or so many a row, are translated whole. */
const TRANSLATED_ENTRIES = 65_536;
const TRANSLATED_ENTRIES_PER_ROW = 4;

export function createJoin(plan: JoinNode, left: Operator, right: Operator, context: QueryContext): Operator {
  const below = leftPipeline(plan, left, context);
  const join = new Join(plan, below, right, context);
  const leftCount = left.columns.length, offset = join.columns.length - right.columns.length;
  const column = (index: number, columns: readonly Column[]): Expr => ({
    kind: "column",
    index,
    type: columns[index].type,
  });
  const exprs = [
    ...below.exprs,
    ...right.columns.map((_, k) => column(offset + k, join.columns)),
  ];
  const residual = plan.residual &&
    mapColumns(
      plan.residual,
      (index) => index < leftCount ? below.exprs[index] : column(offset + index - leftCount, join.columns),
    );
  const isInner = plan.type === "inner" || plan.type === "cross";
  if (!isInner) join.residual = residual;
  const predicates = isInner && residual !== undefined ? [residual] : [];
  return new Pipeline({ kind: "join", join }, predicates, exprs, plan.columns, context);
}

/** The left side as a pipeline whose base may be read instead. */
function leftPipeline(plan: JoinNode, left: Operator, context: QueryContext): Pipeline {
  const pipeline = asPipeline(left, context);
  const { base } = pipeline;
  const isReadable = pipeline.canBeRead() &&
    ![...pipeline.predicates, ...plan.leftKeys].some((e) => isVolatile(e, context));
  // Rows of the right side alone have no left columns to work anything out of.
  const isPlain = pipeline.exprs.every((expr) => expr.kind === "column");
  if (
    !isReadable || (base.kind === "scan" && (base.node.reverse || base.node.rowId)) ||
    (!isPlain && (plan.type === "right" || plan.type === "full"))
  ) return asPipeline(left, context, true);
  return pipeline;
}

interface Built {
  kept: KeptRows;
  probe: JoinProbe;
  /** Where keys of the left side's columns can lie. */
  bounds: Bound[];
}

class Join implements JoinBase {
  readonly columns: readonly Column[];
  residual?: Expr;
  private readonly space: Workspace;
  private readonly operator: string;
  private built?: Built;

  constructor(
    private readonly node: JoinNode,
    readonly left: Pipeline,
    private readonly right: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = [...columnsOfBase(left.base), ...right.columns];
    this.operator = node.type === "cross" ? "cross join" : "join";
    this.space = Workspace.of(context, this.operator);
  }

  /** Right rows without a partner are known only when all left rows have been seen. */
  plan(): BasePlan | undefined {
    if (this.node.type === "right" || this.node.type === "full") return undefined;
    const left = planOf(this.left.base);
    if (left === undefined) return undefined;
    const { probe, bounds } = this.build();
    if (probe.rowCount === 0 && !keepsLeftRows(this.node.type)) return undefined;
    return { kind: "join", left, predicates: this.left.predicates, bounds, probe };
  }

  open(needed: ReadonlySet<number>): RowReader {
    const { left, node, context } = this, { probe, bounds } = this.build();
    // Nothing can match: the left side need not be read at all.
    if (probe.rowCount === 0 && !keepsLeftRows(node.type)) return { next: () => undefined, close: () => {} };
    const ofLeft = JoinReader.leftColumns(probe, left.predicates, needed);
    const rows = openBase(left.base, left.predicates, bounds, ofLeft, context);
    const reader = new JoinReader(probe, left.predicates, rows, needed, context);
    return probe.marks === 0 ? reader : new WithUnmatched(reader, probe, context);
  }

  private build(): Built {
    return this.built ??= this.buildNow();
  }

  private buildNow(): Built {
    const { node, left, right, space, context } = this;
    const kept = keepAll(right, node.rightKeys, space, context), { rowCount } = kept;
    const keys = node.leftKeys.map((key) => left.over(key));
    const leftPlan = planOf(left.base);
    const dictionaries = leftPlan && dictionariesOf(leftPlan, context);
    const leftRows = leftPlan === undefined ? 0 : scanOf(leftPlan, context).source.rowCount;
    const modes = keys.map((key, k) => {
      const known = key.kind === "column" ? dictionaries?.[key.index] : undefined;
      return modeOf(key, kept.computed[k], rowCount, known, leftRows);
    });
    const { index, bounds } = this.index(kept, keys, modes);
    const keepsRight = node.type === "right" || node.type === "full";
    const probe: JoinProbe = {
      type: node.type,
      leftTypes: left.baseTypes,
      keys,
      modes,
      index,
      columns: kept.columns.map((column) => ({ ...column })),
      rowCount,
      marks: keepsRight ? space.bytes(Math.max(1, rowCount)).fill(0).byteOffset : 0,
      residual: this.residual,
      translations: keys.flatMap((key, k) => {
        const dictionary = key.kind === "column" ? dictionaries?.[key.index] : undefined, mode = modes[k];
        if (mode.kind !== "code" || !dictionary?.count || sameDictionary(dictionary, mode.dictionary!)) return [];
        const address = translate(dictionary, mode.dictionary!, space, () => context.poll());
        return [{ key: k, left: dictionary, address }];
      }),
      operator: this.operator,
    };
    return { kept, probe, bounds };
  }

  private index(
    kept: KeptRows,
    leftKeys: readonly Expr[],
    modes: KeyMode[],
  ): { index: JoinIndex; bounds: Bound[] } {
    const { space, context, node } = this, { heap } = context, { rowCount } = kept;
    const { types, vectors } = kept.store;
    const keys = kept.computed.map((vector): Expr => ({
      kind: "column",
      index: vectors.indexOf(vector),
      type: vector.type,
    }));
    const own = Workspace.of(context, this.operator);
    try {
      const compiler = () => new ExpressionCompiler(types, vectors.map((vector) => vector.dictionary), context, own);
      const bounds: Bound[] = [];
      const leavesOutLeft = !keepsLeftRows(node.type);
      let isDense = true, slots = 1;
      for (let k = keys.length - 1; k >= 0; k--) {
        const range = this.rangeOf(compiler(), keys[k], modes[k], kept, own);
        if (range === undefined) {
          isDense = false;
          continue;
        }
        const { low, high, nulls } = range, key = leftKeys[k], count = high < low ? 0n : high - low + 1n;
        if (
          leavesOutLeft && count > 0n && nulls === 0 && modes[k].kind === "value" && key.kind === "column" &&
          BOUNDED.has(key.type)
        ) bounds.push({ column: key.index, low, high });
        modes[k].dense = { low, count, step: slots };
        slots *= Number(count) + 2;
        if (slots > Math.max(DENSE_SLOTS, DENSE_SLOTS_PER_ROW * rowCount)) isDense = false;
      }
      if (!isDense) { for (const mode of modes) delete mode.dense; }
      const forKernel = compiler();
      const key = joinKeyOf(forKernel, keys, modes, isDense);
      let sizeBytes = slots * 4, mask = 0;
      if (key.kind === "hash") {
        const buckets = 2 ** Math.ceil(Math.log2(Math.max(64, rowCount * 1.4)));
        sizeBytes = buckets * bucketBytes(key.words.length);
        mask = buckets - 1;
      }
      const table = space.allocate(sizeBytes), next = space.words(Math.max(1, rowCount));
      for (let at = table; at < table + sizeBytes; at += FILL_BYTES) {
        context.poll();
        heap.u8.fill(0, at, Math.min(at + FILL_BYTES, table + sizeBytes));
      }
      const compiled = indexKernel(heap.memory, forKernel.inputs, key);
      const kernel = new BoundKernel(
        compiled.run,
        compiled.cells,
        forKernel.inputs,
        context,
        own,
        compiled.cells.count,
      );
      const { cells } = kernel;
      kernel.setColumns(vectors);
      kernel.setI32(cells.table, table);
      kernel.setI32(cells.mask, mask);
      kernel.setI32(cells.next, next.byteOffset);
      kernel.setI32(cells.last, rowCount - 1);
      kernel.setI32(cells.repeated, 0);
      if (rowCount > 0) kernel.run(0, rowCount);
      const unique = kernel.getI32(cells.repeated) === 0;
      return { index: { kind: key.kind, table, mask, next: next.byteOffset, unique }, bounds };
    } finally {
      own.release();
    }
  }

  /** Undefined for keys that are no integers. */
  private rangeOf(
    compiler: ExpressionCompiler,
    key: Expr,
    mode: KeyMode,
    { rowCount, store }: KeptRows,
    own: Workspace,
  ): { low: bigint; high: bigint; nulls: number } | undefined {
    if (mode.kind === "code") return { low: 0n, high: BigInt(mode.dictionary!.count) - 1n, nulls: 0 };
    const form = formOf(key.type);
    if (mode.kind !== "value" || form === "f32" || form === "f64") return undefined;
    const joinKey = joinKeyOf(compiler, [key], [mode], false);
    if (joinKey.kind !== "hash") return undefined;
    const { heap } = this.context;
    const compiled = rangeKernel(heap.memory, compiler.inputs, joinKey.words[0], noneOf(key.type, mode));
    const { cells } = compiled;
    const kernel = new BoundKernel(compiled.run, cells, compiler.inputs, this.context, own, cells.count);
    kernel.setColumns(store.vectors);
    kernel.setI64(cells.low, (1n << 63n) - 1n);
    kernel.setI64(cells.high, -(1n << 63n));
    const nulls = rowCount > 0 ? kernel.run(0, rowCount) : 0;
    const at = kernel.block / 8;
    return { low: heap.i64[at + cells.low], high: heap.i64[at + cells.high], nulls };
  }

  close(): void {
    this.space.release();
    this.left.close();
    this.right.close();
    flushKernelRows(this.context.heap.i64);
  }
}

const FILL_BYTES = 1 << 24;

function modeOf(
  key: Expr,
  right: Vector,
  rowCount: number,
  /** The left column's dictionary, where it is known before its rows. */
  left: Dictionary | undefined,
  leftRows: number,
): KeyMode {
  const layout = layoutOf(key.type), other = layoutOf(right.type);
  if (layout === "symbol" && other === "symbol" && key.kind === "column") {
    const dictionary = right.dictionary ?? NO_DICTIONARY;
    const isWorth = (entries: number, rows: number) =>
      entries <= Math.max(TRANSLATED_ENTRIES, TRANSLATED_ENTRIES_PER_ROW * rows);
    const pays = isWorth(dictionary.count, rowCount) && (left === undefined || isWorth(left.count, leftRows));
    if (pays || (left !== undefined && sameDictionary(left, dictionary))) return { kind: "code", dictionary };
    return { kind: "text" };
  }
  if (layout === "symbol" || other === "symbol" || layout === "text") return { kind: "text" };
  return { kind: formOf(key.type) === undefined ? "wide" : "value" };
}

/** After the pairs, the right rows that are in none. */
class WithUnmatched implements RowReader {
  private readonly space: Workspace;
  private isPast = false;
  private row = 0;
  private output?: OutputColumns;
  private readonly rows: Int32Array;

  constructor(
    private readonly pairs: RowReader,
    private readonly probe: JoinProbe,
    private readonly context: QueryContext,
  ) {
    this.space = Workspace.of(context, probe.operator);
    this.rows = this.space.words(MORSEL_ROWS);
  }

  next(): Rows | undefined {
    const { probe, rows } = this;
    if (!this.isPast) {
      const pairs = this.pairs.next();
      if (pairs !== undefined) return pairs;
      this.isPast = true;
    }
    this.context.poll();
    const { u8 } = this.context.heap;
    let n = 0;
    for (; this.row < probe.rowCount && n < MORSEL_ROWS; this.row++) {
      if (u8[probe.marks + this.row] === 0) rows[n++] = this.row;
    }
    if (n === 0) return undefined;
    const output = this.output ??= new OutputColumns(
      [...probe.leftTypes, ...probe.columns.map((column) => column.type)],
      this.space,
    );
    const nulls = rows.slice(0, n).fill(-1), leftCount = probe.leftTypes.length;
    output.vectors.forEach(({ type }, c) => {
      if (c >= leftCount) return output.gather(c, probe.columns[c - leftCount], rows, n, false);
      const none = { type, address: 0, dictionary: type === "SYMBOL" ? NO_DICTIONARY : undefined };
      output.gather(c, none, nulls, n, true);
    });
    return { columns: output.vectors, start: 0, end: n, rowBase: 0n };
  }

  close(): void {
    this.pairs.close();
    this.space.release();
  }
}
