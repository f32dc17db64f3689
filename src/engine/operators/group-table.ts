/**
 * Groups with aggregates whose states fit into records. One kernel processes the rows, directly from a scan's columns
 * if kernels can compute all keys and arguments. A table is plain numbers, so that one thread can fill it and another
 * can take it over.
 */
import { assert } from "../../assert.ts";
import type { Column, Expr } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { Workspace } from "../columns.ts";
import {
  type AggregateShape,
  type CompiledKernel,
  denseKernel,
  type DenseKey,
  denseMergeKernel,
  finishKernel,
  initialiseKernel,
  type KeyOutput,
  type KeyShape,
  singleKernel,
  singleMergeKernel,
  strideOf,
} from "../compiler/aggregate.ts";
import { firstRowShape } from "../compiler/partition.ts";
import {
  BUCKET_BYTES,
  hashKernel,
  hashMergeKernel,
  keyWord,
  partMergeKernel,
  rehashKernel,
  WANTS,
} from "../compiler/hash-groups.ts";
import { BoundKernel } from "../compiler/binding.ts";
import { isLoadedAhead, ROWS_AHEAD_BYTES } from "../compiler/rows-ahead.ts";
import {
  argumentClass,
  type ChangedInputs,
  type ExpressionCompiler,
  formOf,
  type Input,
  isText,
} from "../compiler/expression.ts";
import type { IrNode } from "../compiler/ir.ts";
import type { Batch, Changes, QueryContext, Vector } from "../contract.ts";
import { SharedHeap } from "../../storage/heap.ts";
import { isOutOfMemory } from "../memory.ts";
import { type CompiledExpressions, compileExpressions, dictionaryOf, fuse, type ScanBatch } from "../expressions.ts";
import { stagingOf } from "../physical/calls.ts";
import { recordAggregate } from "../physical/functions.ts";
import { denseRange, tableOf } from "../physical/grouping.ts";
import type { GroupCall, GroupSpec, TableKind } from "../physical/plan.ts";

/** Blocks in shared memory, by kind. */
export type GroupTable =
  | { kind: "single"; records: number; sizeBytes: number }
  | { kind: "dense"; records: number; sizeBytes: number; list: number; listBytes: number; groups: number }
  | {
    kind: "hash";
    records: number;
    sizeBytes: number;
    capacity: number;
    buckets: number;
    bucketCount: number;
    groups: number;
    /** Blocks of texts. */
    arenas: [address: number, sizeBytes: number][];
    /** Size of the last one, or half of the first one's. */
    arenaBytes: number;
    arenaNext: number;
    arenaEnd: number;
  }
  /** Records of other tables, by a list of addresses. */
  | { kind: "list"; records: number; list: number; listBytes: number; groups: number };

const FIRST_CAPACITY = 4_096;
const ARENA_BYTES = 1 << 16;
const NOTHING_CHANGED: ChangedInputs = new Map();
const OPERATOR = "GROUP BY";

/** Keys and aggregates over a kernel's inputs. */
export interface FusedShape {
  kind: "single" | "dense" | "hash";
  keys: KeyShape[];
  dense: { spec: DenseKey; count: number }[];
  aggregates: AggregateShape[];
  inputs: readonly Input[];
  predicate: IrNode | undefined;
  headerWords: number;
  keyOutputs: KeyOutput[];
}

/** Completes the choices that depend on the dictionaries of the rows. */
function decidedBy(
  spec: GroupSpec,
  types: readonly string[],
  dictionaries: readonly (Dictionary | undefined)[],
  { functions }: QueryContext,
): DecidedSpec {
  const { keys, calls, predicates, expectedRows } = spec;
  const exprs = [...keys, ...calls.flatMap((call) => call.args)];
  return {
    ...spec,
    staged: spec.staged === "measured"
      ? stagingOf(exprs, predicates, types, { functions, dictionaries, expectedRows }) === true
      : spec.staged,
    table: spec.table === "measured" ? tableOf(keys, calls, dictionaries, functions) : spec.table,
  };
}

export interface DecidedSpec extends GroupSpec {
  staged: boolean;
}

export class Grouper {
  /** Set once the input's dictionaries are known. */
  decided?: DecidedSpec;
  private shape?: FusedShape;
  private kernel?: BoundKernel;
  private pre?: CompiledExpressions;
  private readonly space: Workspace;
  private shapeSpace?: Workspace;
  private compiler?: ExpressionCompiler;
  private dictionaries: (Dictionary | undefined)[] = [];
  private rehash?: BoundKernel;
  private mergeInto?: BoundKernel;
  private finisher?: { kernel: BoundKernel; addresses: number[] };
  private initialiser?: BoundKernel;

  constructor(
    private spec: GroupSpec,
    private readonly inputTypes: readonly string[],
    private readonly context: QueryContext,
    private readonly numbers = false,
  ) {
    this.space = Workspace.of(context, OPERATOR);
  }

  /** Compiles kernels for the input's dictionaries, which are the same for all batches. */
  prepare(dictionaries: readonly (Dictionary | undefined)[]): void {
    if (this.shape !== undefined) return;
    this.dictionaries = [...dictionaries];
    const { spec, context, inputTypes } = this;
    const options = { operator: OPERATOR, expectedRows: spec.expectedRows, rowIdColumn: spec.rowIdColumn };
    const all = [...spec.keys, ...spec.calls.flatMap((call) => call.args)];
    const space = this.shapeSpace = Workspace.of(context, OPERATOR);
    const { staged, table } = this.decided = decidedBy(spec, inputTypes, dictionaries, context);
    if (spec.table === "measured") context.chose?.(table === "dense" ? "dense table" : "hash table");
    if (spec.staged === "measured") {
      context.chose?.(staged ? "keys and arguments as columns" : "keys and arguments in the kernel");
    }
    if (!staged) {
      const { compiler, predicate } = fuse(spec.predicates, inputTypes, dictionaries, context, space, options);
      this.compiler = compiler;
      this.shape = this.shapeOf(compiler, predicate, spec.keys, spec.calls, table, dictionaries);
    } else {
      // Keys and arguments become columns first.
      this.pre = compileExpressions(all, spec.predicates, inputTypes, context, options);
      const types = all.map((expr) => expr.type),
        columns = all.map((expr, index): Expr => ({ kind: "column", index, type: expr.type }));
      const preDictionaries = all.map((expr) => dictionaryOf(expr, dictionaries));
      let next = spec.keys.length;
      const calls = spec.calls.map((call) => ({ ...call, args: call.args.map(() => columns[next++]) }));
      const plain = fuse([], types, preDictionaries, context, space, { operator: OPERATOR, rowByRow: true });
      const keys = columns.slice(0, spec.keys.length);
      this.shape = this.shapeOf(plain.compiler, undefined, keys, calls, table, preDictionaries);
    }
    this.compile();
  }

  /** True if kernels are not made yet, or for these dictionaries. */
  isFor(dictionaries: readonly (Dictionary | undefined)[]): boolean {
    return this.shape === undefined || dictionaries.every((dictionary, k) => {
      const mine = this.dictionaries[k];
      return mine?.entries === dictionary?.entries && mine?.count === dictionary?.count;
    });
  }

  /** Keys and aggregates, if they are computed directly from the input's columns. */
  get fusedShape(): FusedShape | undefined {
    return this.pre === undefined ? this.shape : undefined;
  }

  get kind(): FusedShape["kind"] {
    return this.shape!.kind;
  }

  /** Bytes of a record. */
  get stride(): number {
    return strideOf(this.shape!.headerWords, this.shape!.aggregates);
  }

  /** Tables of partitions that take groups of this grouper's tables, and have the numbers of their first rows. */
  forParts(context: QueryContext): Grouper {
    const other = new Grouper(this.spec, this.inputTypes, context), shape = this.shape!;
    other.shape = { ...shape, aggregates: [...shape.aggregates, firstRowShape()] };
    other.dictionaries = this.dictionaries;
    return other;
  }

  /** The same groups over other inputs. */
  withShape(shape: FusedShape, context: QueryContext): Grouper {
    const other = new Grouper(this.spec, this.inputTypes, context);
    other.shape = shape;
    other.dictionaries = this.dictionaries;
    other.compile();
    return other;
  }

  private compile(): void {
    const shape = this.shape!, { inputs, predicate, keys, aggregates } = shape;
    const { memory } = this.context.heap;
    const kernel = shape.kind === "single"
      ? singleKernel(memory, inputs, predicate, aggregates, this.spec.isOverBatches)
      : shape.kind === "dense"
      ? denseKernel(
        memory,
        inputs,
        predicate,
        shape.dense.map((d) => d.spec),
        aggregates,
        this.numbers,
      )
      : hashKernel(memory, inputs, predicate, keys, aggregates, this.numbers, this.spec.isOverBatches);
    this.kernel = this.bind(kernel, shape.inputs);
    if (kernel.cells.ahead !== undefined) {
      this.kernel.setI32(kernel.cells.ahead, this.space.allocate(ROWS_AHEAD_BYTES));
    }
  }

  private bind(kernel: CompiledKernel, inputs: readonly Input[] = []): BoundKernel {
    return new BoundKernel(kernel, inputs, this.context, this.space);
  }

  private shapeOf(
    compiler: ExpressionCompiler,
    predicate: IrNode | undefined,
    keys: readonly Expr[],
    calls: readonly GroupCall[],
    table: TableKind,
    dictionaries: readonly (Dictionary | undefined)[],
  ): FusedShape {
    const { context } = this;
    const aggregates = calls.map((call): AggregateShape => {
      const { entry, types } = context.functions.resolve(call.function), aggregate = recordAggregate(entry);
      assert(aggregate !== undefined, `${call.function} keeps its state in a record`);
      const args = call.args.map((arg, k) =>
        aggregate.replaces !== undefined || argumentClass(entry, k) === "text"
          ? compiler.textOf(arg)
          : compiler.lower(arg)
      );
      return { aggregate, id: call.function, types, args };
    });
    if (table === "single") {
      return {
        kind: "single",
        keys: [],
        dense: [],
        aggregates,
        inputs: compiler.inputs,
        predicate,
        headerWords: 0,
        keyOutputs: [],
      };
    }
    if (table === "dense") {
      const dense = keys.map((key) => {
        const { bias, count } = denseRange(key, dictionaries);
        const spec = { node: compiler.lower(key), bias, size: compiler.parameter(count), form: formOf(key.type)! };
        return { spec, count };
      });
      let divisor = 1;
      const keyOutputs = [...dense].reverse().map(({ spec, count }): KeyOutput => {
        const output: KeyOutput = { kind: "dense", divisor, size: count, bias: spec.bias, form: spec.form };
        divisor *= count;
        return output;
      }).reverse();
      return {
        kind: "dense",
        keys: [],
        dense,
        aggregates,
        inputs: compiler.inputs,
        predicate,
        headerWords: 1,
        keyOutputs,
      };
    }
    const shapes = keys.map((key): KeyShape => {
      const form = formOf(key.type);
      if (form === undefined) {
        assert(key.kind === "column", "wide keys are columns");
        return { words: compiler.words(key.index), isText: false, form };
      }
      return { words: [keyWord(compiler.lower(key), form, isText(key.type))], isText: isText(key.type), form };
    });
    let word = 0;
    const keyOutputs = shapes.map((shape): KeyOutput => {
      const output: KeyOutput = { kind: "words", word, words: shape.words.length, form: shape.form };
      word += shape.words.length;
      return output;
    });
    return {
      kind: "hash",
      keys: shapes,
      dense: [],
      aggregates,
      inputs: compiler.inputs,
      predicate,
      headerWords: word,
      keyOutputs,
    };
  }

  /** Number of groups in a dense table. */
  private get denseGroups(): number {
    return this.shape!.dense.reduce((product, key) => product * key.count, 1);
  }

  /** Makes an empty table. The caller owns its blocks. `capacity`: of a hash table at first, at least. */
  create(capacity = FIRST_CAPACITY, firstArenaBytes = ARENA_BYTES): GroupTable {
    const { shape, context } = this;
    assert(shape !== undefined);
    const { memory, heap } = context;
    const stride = strideOf(shape.headerWords, shape.aggregates);
    if (shape.kind === "single") {
      const sizeBytes = Math.max(8, stride);
      const records = memory.allocate(sizeBytes, OPERATOR);
      this.initialise(records, 0, 1);
      return { kind: "single", records, sizeBytes };
    }
    if (shape.kind === "dense") {
      const sizeBytes = this.denseGroups * stride, listBytes = this.denseGroups * 4;
      const records = memory.allocate(sizeBytes, OPERATOR);
      const list = memory.allocate(listBytes, OPERATOR);
      heap.u8.fill(0, records, records + sizeBytes);
      return { kind: "dense", records, sizeBytes, list, listBytes, groups: 0 };
    }
    return {
      kind: "hash",
      ...this.allocateHash(capacity * stride),
      groups: 0,
      arenas: [],
      arenaBytes: firstArenaBytes / 2,
      arenaNext: 0,
      arenaEnd: 0,
    };
  }

  /** Sets records from … to-1 to their start values. */
  initialise(records: number, from: number, to: number): void {
    const { shape, context } = this;
    if (shape!.aggregates.length === 0) return;
    this.initialiser ??= this.bind(initialiseKernel(context.heap.memory, shape!.headerWords, shape!.aggregates));
    this.initialiser.setI32(this.initialiser.cells.states, records);
    this.initialiser.run(from, to);
  }

  /** The keys and arguments of a batch as columns. Only if kernels cannot read the batch itself. */
  stage(batch: ScanBatch): Batch {
    return this.pre!.run(batch);
  }

  /**
   * Prepares another run with other constants in the conditions. Returns the inputs of the kernel that have other values; undefined if the
   * groups have to be made anew.
   */
  change(predicates: readonly Expr[], changes: Changes): ChangedInputs | undefined {
    this.spec = { ...this.spec, predicates };
    if (this.decided !== undefined) this.decided = { ...this.decided, predicates };
    this.pre?.change(predicates, changes);
    const changed = this.compiler === undefined ? NOTHING_CHANGED : this.compiler.changed(changes);
    if (changed !== undefined) this.kernel?.change(changed);
    return changed;
  }

  /** The same for a grouper that has its shape from another one. */
  changeInputs(changed: ChangedInputs): void {
    this.kernel?.change(changed);
  }

  /** Sets a constant input of the kernel to another value. */
  setConstant(input: number, value: bigint): void {
    this.kernel!.setConstant(input, value);
  }

  /** Adds rows start … end-1 of a batch to the table. `numbers`: address for each row's group number. */
  consume(table: GroupTable, columns: Vector[], start: number, end: number, rowBase: bigint, numbers = 0): void {
    if (this.shape === undefined) this.prepare(columns.map((column) => column.dictionary));
    let from = start, to = end, base = rowBase;
    let vectors = columns;
    if (this.pre !== undefined) {
      const moved = start === 0
        ? columns
        : columns.map((c) => (c.address === 0 ? c : { ...c, address: c.address + start * typeOf(c.type).width }));
      const staged = this.pre.run(
        { rowCount: end - start, columns: moved, rowBase: rowBase + BigInt(start) } as ScanBatch,
      );
      if (staged.rowCount === 0) return;
      vectors = staged.columns;
      from = 0;
      to = staged.rowCount;
      base = 0n;
    }
    const kernel = this.kernel!;
    kernel.setColumns(vectors, base);
    if (this.numbers) kernel.setI32(kernel.cells.numbers, numbers);
    if (table.kind === "single") {
      kernel.setI32(kernel.cells.record, table.records);
      kernel.run(from, to);
    } else if (table.kind === "dense") {
      kernel.setI32(kernel.cells.table, table.records);
      kernel.setI32(kernel.cells.list, table.list);
      kernel.setI32(kernel.cells.groups, table.groups);
      kernel.run(from, to);
      table.groups = kernel.getI32(kernel.cells.groups);
    } else if (table.kind === "hash") this.runHash(kernel, table, from, to);
    else throw new Error("the groups of a list cannot be extended");
  }

  /**
   * Adds rows of whole columns to a hash table until the memory is short, and returns how many. Only for keys and
   * arguments that the kernel reads.
   */
  consumeSome(table: GroupTable & { kind: "hash" }, columns: Vector[], rowCount: number): number {
    this.kernel!.setColumns(columns);
    return this.runSome(this.kernel!, table, rowCount);
  }

  /** Adds records of the same shape until the memory is short, and returns how many. */
  insertSome(table: GroupTable & { kind: "hash" }, records: number, count: number): number {
    const kernel = this.hashMerger();
    kernel.setI32(kernel.cells.later, records);
    return this.runSome(kernel, table, count);
  }

  /**
   * Adds groups of a table of the grouper that this one has been made by `forParts` of: `count` buckets at `buckets`, with records at `records`.
   * `firstNumber`: of the table's first group.
   */
  mergePart(
    table: GroupTable & { kind: "hash" },
    { buckets, count, records, firstNumber }: { buckets: number; count: number; records: number; firstNumber: number },
  ): void {
    const { keys, aggregates } = this.shape!;
    const texts = keys.flatMap((key) => key.words.map(() => key.isText));
    const kernel = this.mergeInto ??= this.bind(partMergeKernel(this.context.heap.memory, texts, aggregates));
    kernel.setI32(kernel.cells.list, buckets);
    kernel.setI32(kernel.cells.later, records);
    kernel.setI32(kernel.cells.firstNumber, firstNumber);
    this.runHash(kernel, table, 0, count);
  }

  private runSome(kernel: BoundKernel, table: GroupTable & { kind: "hash" }, count: number): number {
    const progress = { at: 0 };
    try {
      this.runHash(kernel, table, 0, count, progress);
      return count;
    } catch (error) {
      if (!isOutOfMemory(error)) throw error;
      return progress.at;
    }
  }

  private hashMerger(): BoundKernel {
    const { keys, aggregates } = this.shape!;
    const texts = keys.flatMap((key) => key.words.map(() => key.isText));
    return this.mergeInto ??= this.bind(hashMergeKernel(this.context.heap.memory, texts, aggregates));
  }

  /** `progress`: the row to go on with, if the memory is short. */
  private runHash(
    kernel: BoundKernel,
    table: GroupTable & { kind: "hash" },
    start: number,
    end: number,
    progress = { at: 0 },
  ): void {
    for (let at = start; at < end;) {
      const { cells } = kernel;
      kernel.setI32(cells.buckets, table.buckets);
      kernel.setI32(cells.mask, table.bucketCount - 1);
      kernel.setI32(cells.records, table.records);
      kernel.setI32(cells.groups, table.groups);
      kernel.setI32(cells.capacity, table.capacity);
      kernel.setI32(cells.arenaNext, table.arenaNext);
      kernel.setI32(cells.arenaEnd, table.arenaEnd);
      kernel.setI32(cells.wants, 0);
      if (cells.isLarge !== undefined) {
        kernel.setI32(cells.isLarge, Number(isLoadedAhead(table.sizeBytes + table.bucketCount * BUCKET_BYTES)));
      }
      at = progress.at = kernel.run(at, end);
      table.groups = kernel.getI32(cells.groups);
      table.arenaNext = kernel.getI32(cells.arenaNext) >>> 0;
      const wants = kernel.getI32(cells.wants);
      if (wants === WANTS.records) this.grow(table);
      else if (wants === WANTS.texts) this.growArena(table);
      else return;
    }
  }

  /**
   * Allocates records of at least this size and buckets, or nothing. The records fill a block of the heap, and at most two of three buckets are used:
   * these are empty.
   */
  private allocateHash(
    recordBytes: number,
  ): Pick<GroupTable & { kind: "hash" }, "records" | "sizeBytes" | "capacity" | "buckets" | "bucketCount"> {
    const { memory, heap } = this.context, sizeBytes = SharedHeap.blockBytes(recordBytes);
    const capacity = Math.floor(sizeBytes / this.stride), bucketCount = 2 ** Math.ceil(Math.log2(1.5 * capacity));
    const records = memory.allocate(sizeBytes, OPERATOR);
    try {
      const buckets = memory.allocate(bucketCount * BUCKET_BYTES, OPERATOR);
      heap.u8.fill(0, buckets, buckets + bucketCount * BUCKET_BYTES);
      return { records, sizeBytes, capacity, buckets, bucketCount };
    } catch (error) {
      memory.free(records, sizeBytes);
      throw error;
    }
  }

  /** Throws if there is not enough memory, and leaves the table unchanged. */
  private grow(table: GroupTable & { kind: "hash" }): void {
    const { memory, heap } = this.context;
    const larger = this.allocateHash(table.sizeBytes * 2), { records, buckets, bucketCount } = larger;
    heap.u8.copyWithin(records, table.records, table.records + table.groups * this.stride);
    const rehash = this.rehash ??= this.bind(rehashKernel(heap.memory));
    rehash.setI32(rehash.cells.old, table.buckets);
    rehash.setI32(rehash.cells.buckets, buckets);
    rehash.setI32(rehash.cells.mask, bucketCount - 1);
    rehash.run(0, table.bucketCount);
    const old = { ...table };
    Object.assign(table, larger);
    memory.free(old.records, old.sizeBytes);
    memory.free(old.buckets, old.bucketCount * BUCKET_BYTES);
  }

  private growArena(table: GroupTable & { kind: "hash" }): void {
    // All texts of a key must fit into one block: blocks double until they do.
    const sizeBytes = table.arenaBytes * 2;
    const address = this.context.memory.allocate(sizeBytes, OPERATOR);
    table.arenas.push([address, sizeBytes]);
    table.arenaBytes = sizeBytes;
    table.arenaNext = address;
    table.arenaEnd = address + sizeBytes;
  }

  /** Merges the groups of `later`, whose rows come after the table's. `later` cannot be used afterwards. */
  merge(table: GroupTable, later: GroupTable): void {
    const { shape, context } = this;
    const { memory } = context.heap;
    if (table.kind === "single") this.add(table, later);
    else if (table.kind === "dense" && later.kind === "dense") {
      const kernel = this.mergeInto ??= this.bind(denseMergeKernel(memory, shape!.aggregates));
      const { cells } = kernel;
      kernel.setI32(cells.table, table.records);
      kernel.setI32(cells.list, table.list);
      kernel.setI32(cells.groups, table.groups);
      kernel.setI32(cells.laterTable, later.records);
      kernel.setI32(cells.laterList, later.list);
      kernel.run(0, later.groups);
      table.groups = kernel.getI32(cells.groups);
    } else if (table.kind === "hash" && later.kind === "hash") {
      const kernel = this.hashMerger();
      kernel.setI32(kernel.cells.later, later.records);
      this.runHash(kernel, table, 0, later.groups);
      // Texts of the merged groups are in the later table's arenas.
      table.arenas.unshift(...later.arenas);
      later.arenas = [];
    } else throw new Error("all tables of a query have the same kind");
    this.drop(later);
  }

  /** Without keys: merges the rows of `later`, which stays valid. */
  add(table: GroupTable, later: GroupTable): void {
    const kernel = this.mergeInto ??= this.bind(singleMergeKernel(this.context.heap.memory, this.shape!.aggregates));
    kernel.setI32(kernel.cells.record, table.records);
    kernel.setI32(kernel.cells.laters, later.records);
    kernel.run(0, 1);
  }

  drop(table: GroupTable): void {
    const { memory } = this.context;
    if (table.kind === "list") return memory.free(table.list, table.listBytes);
    memory.free(table.records, table.sizeBytes);
    if (table.kind === "dense") memory.free(table.list, table.listBytes);
    if (table.kind === "hash") {
      memory.free(table.buckets, table.bucketCount * BUCKET_BYTES);
      for (const [address, sizeBytes] of table.arenas) memory.free(address, sizeBytes);
    }
  }

  bytesOf(table: GroupTable): number {
    if (table.kind === "list") return table.listBytes;
    if (table.kind !== "hash") return table.sizeBytes;
    const texts = table.arenas.reduce((sum, [, sizeBytes]) => sum + sizeBytes, 0);
    return table.sizeBytes + table.bucketCount * BUCKET_BYTES + texts;
  }

  groupCount(table: GroupTable): number {
    return table.kind === "single" ? 1 : table.groups;
  }

  /** Writes groups from … to-1 as columns at `keyAddresses` and `outAddresses`. */
  finish(
    table: GroupTable,
    from: number,
    to: number,
    keyAddresses: readonly number[],
    outAddresses: readonly number[],
  ): void {
    const { shape, spec } = this;
    const kernel = (this.finisher ??= {
      kernel: this.bind(
        finishKernel(
          this.context.heap.memory,
          table.kind === "dense" ? "numbers" : table.kind === "list" ? "addresses" : "none",
          shape!.headerWords,
          shape!.keyOutputs,
          shape!.aggregates,
          spec.calls.map((call) => formOf(call.type)!),
        ),
      ),
      addresses: [],
    }).kernel;
    kernel.setI32(kernel.cells.records, table.records);
    if (table.kind === "dense" || table.kind === "list") kernel.setI32(kernel.cells.list, table.list);
    keyAddresses.forEach((address, k) => kernel.setI32(kernel.cells[`key${k}`], address));
    outAddresses.forEach((address, k) => kernel.setI32(kernel.cells[`out${k}`], address));
    kernel.run(from, to);
  }

  /** The dictionaries of the output columns: keys, then aggregates. */
  outputDictionaries(columns: readonly Column[]): (Dictionary | undefined)[] {
    return columns.map(({ type }, k) => {
      if (layoutOf(type) !== "symbol") return undefined;
      const exprs = k < this.spec.keys.length ? [this.spec.keys[k]] : this.spec.calls[k - this.spec.keys.length].args;
      const symbol = exprs.find((expr) => layoutOf(expr.type) === "symbol");
      return symbol && dictionaryOf(symbol, this.dictionaries);
    });
  }

  close(): void {
    this.pre?.close();
    this.shapeSpace?.release();
    this.space.release();
  }
}
