/**
 * Scan, filters and projections in one: whatever filters and projections lie over a scan (or over another operator) are put
 * together into predicates and expressions over the scan's columns, so that one kernel does them all. Aggregates take it apart
 * and put the same predicates and expressions into theirs.
 */
import { childrenOf, type Column, type Expr, type ScanNode } from "../../sql/plan.ts";
import type { ScanSource } from "../../storage/contract.ts";
import { typeOf } from "../../types/mod.ts";
import { Workspace } from "../columns.ts";
import type { Batch, Operator, QueryContext } from "../contract.ts";
import { columnsOf, mapColumns } from "../compiler/expression.ts";
import { type CompiledExpressions, compileExpressions } from "../expressions.ts";
import { columnsOfBase } from "./base.ts";
import { advance, ScanReader, sourceOf } from "./scan.ts";
import type { JoinBase, PipelineBase, RowReader } from "./base-plan.ts";
import { type Morsel, morselsOf } from "./morsels.ts";

/** Put-together expressions beyond this are left apart: a sum of sums doubles with every level. */
const FUSED_SIZE_MAX = 400;

export class Pipeline implements Operator {
  private compiled?: CompiledExpressions;
  private reader?: ScanReader;
  private joined?: RowReader;
  private morsels?: Morsel[];
  private position = 0;
  private reverser?: Reverser;

  constructor(
    readonly base: PipelineBase,
    /** Over the base's columns, all of which must hold. */
    readonly predicates: readonly Expr[],
    readonly exprs: readonly Expr[],
    readonly columns: readonly Column[],
    private readonly context: QueryContext,
  ) {}

  get baseTypes(): string[] {
    return columnsOfBase(this.base).map((column) => column.type);
  }

  /** The column of row ids, which no chunk holds. */
  get rowIdColumn(): number | undefined {
    return this.base.kind === "scan" && this.base.node.rowId ? this.base.node.columns.length - 1 : undefined;
  }

  /** The same rows, fewer or with other columns; undefined when they cannot be one. This pipeline is not to be used any more. */
  then(
    predicate: Expr | undefined,
    exprs: readonly Expr[] | undefined,
    columns: readonly Column[],
  ): Pipeline | undefined {
    if (this.exprs.some((expr) => isVolatile(expr, this.context))) return undefined;
    const through = (expr: Expr) => mapColumns(expr, (index) => this.exprs[index]);
    const predicates = predicate === undefined ? this.predicates : [...this.predicates, through(predicate)];
    const results = exprs?.map(through) ?? this.exprs;
    const computes = this.exprs.some((expr) => expr.kind !== "column" && expr.kind !== "constant");
    if (
      computes &&
      [...predicates, ...results].reduce((sum, expr) => sum + sizeOf(expr), 0) > FUSED_SIZE_MAX + results.length
    ) return undefined;
    return new Pipeline(this.base, predicates, results, columns, this.context);
  }

  /** An expression over the output as one over the base. */
  over(expr: Expr): Expr {
    return mapColumns(expr, (index) => this.exprs[index]);
  }

  /** May expressions over the output be worked out from the base? Not when each evaluation gives something else. */
  canBeRead(): boolean {
    return !this.exprs.some((expr) => isVolatile(expr, this.context));
  }

  next(): Batch | undefined {
    for (;;) {
      this.context.poll();
      const batch = this.base.kind === "scan"
        ? this.nextOfScan(this.base.node, this.base.source)
        : this.base.kind === "join"
        ? this.nextOfJoin(this.base.join)
        : this.nextOfOperator(this.base.input);
      if (batch === undefined || batch.rowCount > 0) return batch;
    }
  }

  private nextOfOperator(input: Operator): Batch | undefined {
    const batch = input.next();
    if (batch === undefined) return undefined;
    this.compiled ??= compileExpressions(this.exprs, this.predicates, this.baseTypes, this.context);
    return this.compiled.run(batch);
  }

  private nextOfJoin(join: JoinBase): Batch | undefined {
    this.joined ??= join.open(this.neededColumns());
    this.compiled ??= compileExpressions(this.exprs, this.predicates, this.baseTypes, this.context);
    const rows = this.joined.next();
    return rows && this.compiled.run({ rowCount: rows.end, columns: rows.columns });
  }

  /** The columns of the base that are read. */
  private neededColumns(): Set<number> {
    const needed = new Set<number>();
    for (const expr of [...this.predicates, ...this.exprs]) columnsOf(expr, needed);
    return needed;
  }

  private nextOfScan(node: ScanNode, source: ScanSource): Batch | undefined {
    if (this.morsels === undefined) {
      this.morsels = morselsOf(node, source, this.context, this.predicates);
      if (node.reverse) this.morsels.reverse();
      this.reader = new ScanReader(node, this.neededColumns(), this.context);
      this.compiled = compileExpressions(this.exprs, this.predicates, this.baseTypes, this.context, {
        operator: "scan",
        expectedRows: source.rowCount,
        rowIdColumn: this.rowIdColumn,
      });
    }
    const morsel = this.morsels[this.position++];
    if (morsel === undefined) return undefined;
    const columns = advance(this.reader!.open(morsel.segment), morsel.start);
    const rowBase = this.rowIdColumn === undefined ? 0n : this.reader!.rowBase(morsel.segment) + BigInt(morsel.start);
    const batch = this.compiled!.run({ rowCount: morsel.end - morsel.start, columns, rowBase } as Batch);
    if (!node.reverse) return batch;
    this.reverser ??= new Reverser(this.columns, this.context);
    return this.reverser.reverse(batch);
  }

  close(): void {
    this.compiled?.close();
    this.reader?.close();
    this.reverser?.close();
    this.joined?.close();
    if (this.base.kind === "operator") this.base.input.close();
    if (this.base.kind === "join") this.base.join.close();
  }
}

export function createScan(node: ScanNode, context: QueryContext): Operator {
  const exprs: Expr[] = node.columns.map((column, index) => ({ kind: "column", index, type: column.type }));
  return new Pipeline(
    { kind: "scan", node, source: sourceOf(node, context) },
    node.predicate === undefined ? [] : [node.predicate],
    exprs,
    node.columns,
    context,
  );
}

/** Does it give something else each time? */
export function isVolatile(expr: Expr, context: Pick<QueryContext, "functions">): boolean {
  if (expr.kind === "call" && context.functions.resolve(expr.function).entry.volatility === "volatile") return true;
  return childrenOf(expr).some((child) => isVolatile(child, context));
}

function sizeOf(expr: Expr): number {
  return childrenOf(expr).reduce((sum, child) => sum + sizeOf(child), 1);
}

/** Batches with their last row first. */
class Reverser {
  private readonly space: Workspace;
  private readonly buffers: { address: number; rows: number }[] = [];

  constructor(private readonly columns: readonly Column[], private readonly context: QueryContext) {
    this.space = Workspace.of(context, "scan");
  }

  reverse(batch: Batch): Batch {
    const { heap } = this.context, { rowCount } = batch;
    return {
      rowCount,
      columns: batch.columns.map((vector, k) => {
        const { width } = typeOf(this.columns[k].type);
        let buffer = this.buffers[k];
        if (buffer === undefined || buffer.rows < rowCount) {
          if (buffer !== undefined) this.space.free(buffer.address);
          buffer = this.buffers[k] = { rows: rowCount, address: this.space.allocate(rowCount * width) };
        }
        const { address } = buffer;
        if (width <= 2) {
          const view = width === 1 ? heap.u8 : heap.u16, from = vector.address / width, to = address / width;
          for (let row = 0; row < rowCount; row++) view[to + row] = view[from + rowCount - 1 - row];
        } else {
          const words = width / 4, from = vector.address / 4, to = address / 4, view = heap.i32;
          for (let row = 0; row < rowCount; row++) {
            for (let k = 0; k < words; k++) view[to + row * words + k] = view[from + (rowCount - 1 - row) * words + k];
          }
        }
        return { ...vector, address };
      }),
    };
  }

  close(): void {
    this.space.release();
  }
}
