/** Executes scan, filters and projections together, as the physical pass has combined them. */
import type { Column, ScanNode } from "../../sql/plan.ts";
import type { RowRange, ScanSource } from "../../storage/contract.ts";
import { typeOf } from "../../types/mod.ts";
import { Workspace } from "../columns.ts";
import { type Batch, type Changes, MORSEL_ROWS, type Operator, type QueryContext } from "../contract.ts";
import { columnsOf } from "../compiler/expression.ts";
import { type CompiledExpressions, compileExpressions, type CompileOptions } from "../expressions.ts";
import type { PhysicalPipeline, Reading } from "../physical/plan.ts";
import { rowIdColumn, typesOf } from "../physical/reading.ts";
import { closeBase, reboundBase, rewindBase } from "./base.ts";
import { LookupReader } from "./lookup-reader.ts";
import { ReadAhead } from "./read-ahead.ts";
import { advance, ScanReader } from "./scan.ts";
import { SelectedRows } from "./selected-rows.ts";
import type { JoinBase, PipelineBase, RowReader } from "./base-plan.ts";
import type { Lookup, Morsel } from "./morsel.ts";
import { morselsOf } from "./morsels.ts";

/** Rows of the first batch of a scan that is read in steps. Each following one has more. Functions make no kernels for so few. */
const FIRST_RUN_ROWS = 512;

export class Pipeline implements Operator {
  readonly columns: readonly Column[];
  private compiled?: CompiledExpressions;
  private reader?: ScanReader;
  private finder?: LookupReader;
  private selected?: SelectedRows;
  /** What the finder reads. */
  private lookedUp?: Lookup;
  private joined?: RowReader;
  private morsels?: Morsel[];
  private position = 0;
  /** The rows of the present morsel that are not read, if there are any. */
  private left?: RowRange;
  /** Most rows of the next step. */
  private runRows = FIRST_RUN_ROWS;
  private reverser?: Reverser;
  private ahead?: ReadAhead;
  public rowsAtMost?: number;

  constructor(
    private base: PipelineBase,
    private reading: Reading,
    private readonly context: QueryContext,
    private readonly way: Pick<PhysicalPipeline, "rowsAtMost" | "inSteps" | "ahead"> = {},
  ) {
    this.columns = reading.columns;
    this.rowsAtMost = way.rowsAtMost;
  }

  next(): Batch | undefined {
    for (;;) {
      this.context.poll();
      const batch = this.base.kind === "scan"
        ? this.nextOfScan(this.base.node, this.base.source, this.base.reader)
        : this.base.kind === "join"
        ? this.nextOfJoin(this.base.join)
        : this.nextOfOperator(this.base.input);
      if (batch === undefined || batch.rowCount > 0) return batch;
    }
  }

  private nextOfOperator(input: Operator): Batch | undefined {
    const batch = input.next();
    return batch && this.kernels().run(batch);
  }

  private nextOfJoin(join: JoinBase): Batch | undefined {
    this.joined ??= join.open(this.neededColumns());
    const rows = this.joined.next();
    return rows && this.kernels().run({ rowCount: rows.end, columns: rows.columns });
  }

  private kernels(options?: CompileOptions): CompiledExpressions {
    const { exprs, predicates, baseColumns } = this.reading;
    return this.compiled ??= compileExpressions(exprs, predicates, typesOf(baseColumns), this.context, options);
  }

  private needed?: ReadonlySet<number>;

  /** The columns of the base that are read. Other constants change none of them. */
  private neededColumns(): ReadonlySet<number> {
    return this.needed ??= this.columnsRead();
  }

  private columnsRead(): Set<number> {
    const needed = new Set<number>(), { predicates, exprs } = this.reading;
    for (const expr of [...predicates, ...exprs]) columnsOf(expr, needed);
    return needed;
  }

  private nextOfScan(node: ScanNode, source: ScanSource, counter?: number): Batch | undefined {
    if (this.morsels === undefined) {
      this.morsels = morselsOf(node, source, this.context, this.reading.predicates, [], true);
      if (node.reverse) this.morsels.reverse();
      this.reader ??= new ScanReader(node, this.neededColumns(), this.context);
    }
    const whole = this.morsels[this.position];
    if (whole === undefined) return undefined;
    if (whole.lookup !== undefined) return this.nextLookedUp(whole.lookup, node, source, counter);
    const ahead = this.readAhead(node), kept = ahead?.read(this.morsels, this.position);
    if (kept !== undefined) {
      this.position++;
      return node.reverse && kept.rowCount > 0 ? this.reversed(kept) : kept;
    }
    const start = performance.now(), morsel = this.nextRows(whole, node.reverse === true);
    const batch = this.readRows(morsel, node, source, counter);
    ahead?.learn(morsel.end - morsel.start, batch.rowCount, performance.now() - start);
    return batch;
  }

  /** Undefined if rows are read alone: the first ones of a limit, and those of a morsel of which some have been read. */
  private readAhead(node: ScanNode): ReadAhead | undefined {
    const { way: { ahead, inSteps }, context } = this, isInSteps = inSteps === true || node.reverse === true;
    if (ahead === undefined || context.parallel === undefined || this.left !== undefined) return undefined;
    if (isInSteps && this.runRows < MORSEL_ROWS) return undefined;
    return this.ahead ??= new ReadAhead(node, this.reading, ahead, isInSteps, context);
  }

  private readRows(morsel: Morsel, node: ScanNode, source: ScanSource, counter?: number): Batch {
    const rowIds = rowIdColumn(this.reading);
    const options = { operator: "scan", expectedRows: source.rowCount, rowIdColumn: rowIds };
    const selected = node.reverse ? undefined : this.selectedOf(node).read(morsel);
    if (selected !== undefined) {
      if (counter !== undefined) this.context.analysis?.countTaken(counter, selected.end);
      if (selected.end === 0) return { rowCount: 0, columns: [] };
      return this.kernels(options).run({ rowCount: selected.end, columns: selected.columns });
    }
    const { start, end } = morsel, columns = this.reader!.open(morsel.segment, { from: start, to: end }, { start });
    const rowCount = end - start;
    if (counter !== undefined) this.context.analysis?.countTaken(counter, rowCount);
    const rowBase = rowIds === undefined ? 0n : this.reader!.rowBase(morsel.segment) + BigInt(start);
    const batch = this.kernels(options).run({ rowCount, columns, rowBase } as Batch);
    return node.reverse ? this.reversed(batch) : batch;
  }

  /** The next rows of a morsel. Under a limit often only some of the first rows are wanted, or of the newest. */
  private nextRows(whole: Morsel, isReverse: boolean): Morsel {
    const { from, to } = this.left ?? { from: whole.start, to: whole.end };
    const rowCount = this.way.inSteps || isReverse ? Math.min(to - from, this.runRows) : to - from;
    const start = isReverse ? to - rowCount : from, end = start + rowCount;
    this.left = rowCount === to - from ? undefined : isReverse ? { from, to: start } : { from: end, to };
    if (this.left === undefined) this.position++;
    this.runRows = Math.min(MORSEL_ROWS, 4 * this.runRows);
    return { ...whole, start, end };
  }

  private selectedOf(node: ScanNode): SelectedRows {
    return this.selected ??= new SelectedRows(node, this.neededColumns(), this.reading.predicates, this.context);
  }

  private reversed(batch: Batch): Batch {
    this.reverser ??= new Reverser(this.columns, this.context);
    return this.reverser.reverse(batch);
  }

  private nextLookedUp(lookup: Lookup, node: ScanNode, source: ScanSource, counter?: number): Batch {
    this.finder ??= new LookupReader(node, this.neededColumns(), lookup.column, node.reverse === true, this.context);
    if (this.lookedUp !== lookup) this.finder.start(this.lookedUp = lookup);
    const rows = this.finder.next();
    if (rows === undefined) {
      this.position++;
      return { rowCount: 0, columns: [] };
    }
    const rowCount = rows.end - rows.start, columns = advance(rows.columns, rows.start);
    if (counter !== undefined) this.context.analysis?.countTaken(counter, rowCount);
    const batch = this.kernels({ operator: "scan", expectedRows: source.rowCount }).run({ rowCount, columns });
    return node.reverse && rows.isForward ? this.reversed(batch) : batch;
  }

  rewind(): boolean {
    const { base } = this;
    const { joined } = this;
    this.joined = undefined;
    if (!rewindBase(base, joined)) return false;
    this.ahead?.release();
    this.ahead = undefined;
    this.position = 0;
    this.left = undefined;
    this.runRows = FIRST_RUN_ROWS;
    this.reader?.rewind();
    this.selected?.restart();
    this.lookedUp = undefined;
    return true;
  }

  rebind(changes: Changes): boolean {
    const base = reboundBase(this.base, changes, this.context);
    if (base === undefined) return false;
    this.base = base;
    const predicates = changes.take(this.reading.predicates), exprs = changes.take(this.reading.exprs);
    if (predicates !== this.reading.predicates || exprs !== this.reading.exprs) {
      this.reading = { ...this.reading, predicates, exprs };
      this.compiled?.change(predicates, changes, exprs);
    }
    this.morsels = undefined;
    this.finder?.close();
    this.finder = undefined;
    if (base.kind === "scan") {
      this.reader?.rebind(base.node);
      this.selected?.rebind(base.node, predicates);
    }
    if (this.rowsAtMost !== undefined) {
      this.rowsAtMost = base.kind === "scan"
        ? base.source.rowCount
        : base.kind === "operator"
        ? base.input.rowsAtMost
        : 0;
    }
    return true;
  }

  close(): void {
    this.ahead?.release();
    this.compiled?.close();
    this.reader?.close();
    this.finder?.close();
    this.selected?.close();
    this.reverser?.close();
    this.joined?.close();
    closeBase(this.base);
  }
}

/** Reverses the rows of batches. */
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
