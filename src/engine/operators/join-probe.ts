/**
 * The probe side of a join: left rows look up matches in the build side, which is in memory with an index over its keys. All of it is
 * plain data, so that every thread of a query can probe.
 */
import type { Expr, JoinNode } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { SharedHeap } from "../../storage/heap.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { gather, NO_DICTIONARY, sameDictionary, Workspace } from "../columns.ts";
import { keyWord } from "../compiler/hash-groups.ts";
import { BoundKernel, flushKernelRows } from "../compiler/binding.ts";
import { columnsOf, type ExpressionCompiler, formOf } from "../compiler/expression.ts";
import { i32, i64, input } from "../compiler/ir.ts";
import { type JoinKey, probeKernel } from "../compiler/join.ts";
import { ROWS_AHEAD_BYTES } from "../compiler/rows-ahead.ts";
import { MORSEL_ROWS, type QueryContext, type Vector } from "../contract.ts";
import { type CompiledExpressions, compileExpressions, fuse, isFusable } from "../expressions.ts";
import { TextInterner } from "../keys.ts";
import { LastRows } from "./last-rows.ts";
import { PassedRows } from "./passed-rows.ts";
import { advance } from "./scan.ts";
import { UnmatchedRows } from "./unmatched-rows.ts";
import type { JoinProbe, KeyMode, MorselReader, RowReader, Rows } from "./base-plan.ts";
import type { Morsel } from "./morsel.ts";

/** Most left rows and pairs of a step, so that intermediate results stay in a cache and take little memory of each thread. */
const STEP_MAX = 16_384;

/** Initial capacity of a step, in pairs. It grows if there are many. */
const FIRST_PAIRS = 1_024;

/** Memory of a reader that outputs these right columns. */
export function readerBytesOf(columns: readonly Vector[]): number {
  const lists = 2 * SharedHeap.blockBytes(4 * STEP_MAX);
  return columns.reduce((sum, { type }) => sum + SharedHeap.blockBytes(outputBytes(type, STEP_MAX)), lists);
}

/** Lanes may read beyond the last row. */
function outputBytes(type: string, rowCount: number): number {
  return rowCount * typeOf(type).width + 16;
}

export function keepsLeftRows(type: JoinNode["type"]): boolean {
  return type === "left" || type === "full";
}

/**
 * Keys over a kernel's inputs. `translations`: addresses by key, for codes of a dictionary other than the right side's.
 */
export function joinKeyOf(
  compiler: ExpressionCompiler,
  keys: readonly Expr[],
  modes: readonly KeyMode[],
  isDense: boolean,
  translations: readonly (number | undefined)[] = [],
): JoinKey {
  const words = keys.map((key, k) => {
    const form = formOf(key.type);
    switch (modes[k].kind) {
      case "wide":
        return compiler.words(key.kind === "column" ? key.index : -1);
      case "text":
        return [keyWord(compiler.textOf(key), "i64", true)];
      case "code": {
        const address = translations[k];
        if (address === undefined || key.kind !== "column") return [i64.extendS(compiler.lower(key))];
        const lookup = { kind: "lookup", column: key.index, address, form: "i32" } as const;
        return [i64.extendS(input(compiler.inputs.push(lookup) - 1, "i32"))];
      }
      case "value":
        // SHORT and CHAR share the same sixteen bits.
        if (form === "u16") return [i64.extendS(i32.extend16(compiler.lower(key)))];
        return [keyWord(compiler.lower(key), form!, false)];
    }
  });
  if (!isDense) {
    const texts = modes.flatMap((mode, k) => words[k].map(() => mode.kind === "text"));
    return { kind: "hash", words: words.flat(), texts };
  }
  const constant = (value: bigint) => input(compiler.inputs.push({ kind: "constant", type: "i64", value }) - 1, "i64");
  return {
    kind: "dense",
    keys: words.map(([word], k) => {
      const { low, count, step } = modes[k].dense!;
      const none = noneOf(keys[k].type, modes[k]);
      return { word, none, low: constant(low), count: constant(count), step: compiler.parameter(step) };
    }),
  };
}

/** The word of null, if it is separate from other values. */
export function noneOf(type: string, mode: KeyMode): bigint | undefined {
  if (mode.kind === "code") return -1n;
  if (layoutOf(type) === "i64") return -(1n << 63n);
  return layoutOf(type) === "i32" && type !== "IPv4" ? -(1n << 31n) : undefined;
}

/** Writes the right codes for the texts of the left dictionary. */
export function translate(left: Dictionary, right: Dictionary, space: Workspace, poll: () => void): number {
  const own = new Workspace(space.heap, space.memory, space.operator);
  try {
    const { u32, i32 } = space.heap;
    const interner = new TextInterner(own);
    const number = ({ entries }: Dictionary, code: number, insert: boolean) => {
      if (code % 4_096 === 0) poll();
      return interner.number(u32[(entries >>> 2) + 2 * code], i32[(entries >>> 2) + 2 * code + 1], insert);
    };
    // Number the texts in order; each occurs once in a dictionary.
    for (let code = 0; code < right.count; code++) number(right, code, true);
    const table = space.words(left.count + 1);
    table[0] = -1;
    for (let code = 0; code < left.count; code++) table[code + 1] = number(left, code, false);
    return table.byteOffset;
  } finally {
    own.release();
  }
}

interface Bound {
  dictionaries: (Dictionary | undefined)[];
  space: Workspace;
  kernel: BoundKernel;
}

export class JoinReader implements MorselReader {
  private readonly space: Workspace;
  private leftRows: Int32Array;
  private rightRows: Int32Array;
  /** Most pairs of a step: the capacity of the lists, or less. */
  private pairsMax = FIRST_PAIRS;
  private readonly leftNeeded: ReadonlySet<number>;
  private readonly keepsLeft: boolean;
  private readonly ends: boolean;
  /** Addresses by column, for as many pairs as the lists. */
  private readonly outputs = new Map<number, number>();
  private bound?: Bound;
  /**
   * If keys or predicates have no kernel form: left columns and keys, computed in advance. `places`: indices of the
   * left columns.
   */
  private staged?: { expressions: CompiledExpressions; places: ReadonlyMap<number, number>; types: string[] };
  private readonly residual?: { expression: CompiledExpressions; needed: ReadonlySet<number> };

  private readonly lastRows?: LastRows;
  private unmatched?: UnmatchedRows;
  /** The current morsel is one of unmatched rows. */
  private isUnmatched = false;
  /** Counts the left rows that pass the predicates. */
  private passed?: PassedRows;
  /** The current left rows, by the left base's columns. */
  private columns?: readonly Vector[];
  private rowStart = 0;
  private rowEnd = 0;
  private position = 0;
  private resume = 0;
  /** The pairs have the left rows from `firstRow` on, in order. */
  private isWhole = false;
  private firstRow = 0;
  private leftMatched = false;
  /** The last step has used much of its capacity. */
  private isFull = false;

  /** The columns of the left base that are read. */
  static leftColumns(probe: JoinProbe, predicates: readonly Expr[], needed: ReadonlySet<number>): Set<number> {
    const columns = new Set(needed), residual = probe.residual === undefined ? [] : [probe.residual];
    for (const expr of [...predicates, ...probe.keys, ...residual]) columnsOf(expr, columns);
    if (probe.lastRows !== undefined) columns.add(probe.lastRows.leftTime);
    for (const column of columns) if (column >= probe.leftTypes.length) columns.delete(column);
    return columns;
  }

  constructor(
    readonly probe: JoinProbe,
    private predicates: readonly Expr[],
    private left: RowReader | MorselReader | undefined,
    private readonly needed: ReadonlySet<number>,
    private readonly context: QueryContext,
    /** Of the left base's columns, if they may be read as those of unmatched rows. */
    private readonly leftDictionaries?: readonly (Dictionary | undefined)[],
  ) {
    this.space = Workspace.of(context, probe.operator);
    this.leftRows = this.space.words(FIRST_PAIRS);
    this.rightRows = this.space.words(FIRST_PAIRS);
    this.leftNeeded = JoinReader.leftColumns(probe, predicates, needed);
    this.keepsLeft = keepsLeftRows(probe.type);
    this.ends = this.keepsLeft && probe.residual !== undefined;
    if (probe.lastRows !== undefined) {
      this.lastRows = new LastRows(probe.lastRows, probe.rowCount, this.space, context);
    }
    if (probe.residual !== undefined) {
      const types = [...probe.leftTypes, ...probe.columns.map((column) => column.type)];
      const expression = compileExpressions([probe.residual], undefined, types, context, { operator: probe.operator });
      this.residual = { expression, needed: columnsOf(probe.residual) };
    }
  }

  /** How pairs are divided into steps tells in which order sums add them up. */
  restart(): void {
    this.setPairsMax(FIRST_PAIRS);
    (this.left as MorselReader).restart?.();
  }

  start(morsel: Morsel): void {
    this.isUnmatched = morsel.unmatched === this.probe.id;
    if (this.isUnmatched) {
      const { probe, needed, context, leftDictionaries } = this;
      this.unmatched ??= new UnmatchedRows(probe, needed, context, leftDictionaries);
      this.unmatched.start(morsel.start, morsel.end);
    } else (this.left as MorselReader).start(morsel);
  }

  next(): Rows | undefined {
    if (this.isUnmatched) return this.unmatched!.next();
    for (;;) {
      this.context.poll();
      if (this.columns === undefined) {
        const rows = this.left!.next();
        if (rows === undefined) return undefined;
        this.take(rows);
        if (this.rowStart === this.rowEnd) {
          this.columns = undefined;
          continue;
        }
      }
      const columns = this.columns!, n = this.pairs(columns);
      if (this.position >= this.rowEnd) this.columns = undefined;
      this.context.analysis?.countPairs(this.probe.id, n);
      if (n > 0) return { columns: this.gather(columns, n, this.needed), start: 0, end: n, rowBase: 0n };
    }
  }

  /** After a run: keeps what another one can use. */
  suspend(): void {
    this.left?.close();
    this.left = undefined;
    this.columns = undefined;
  }

  /** Reads other left rows. */
  reopen(left: RowReader, predicates: readonly Expr[]): this {
    this.left = left;
    this.setPairsMax(FIRST_PAIRS);
    if (predicates !== this.predicates) this.unbind();
    this.predicates = predicates;
    return this;
  }

  private unbind(): void {
    this.staged?.expressions.close();
    this.bound?.space.release();
    this.passed?.close();
    this.staged = this.bound = this.passed = undefined;
  }

  private take(rows: Rows): void {
    const { probe, context } = this;
    let keyColumns: readonly Vector[] = rows.columns;
    this.rowStart = rows.start;
    this.rowEnd = rows.end;
    this.columns = rows.columns;
    if (this.staged === undefined && !this.bind(probe.leftTypes, probe.keys, this.predicates, rows.columns)) {
      this.stage();
    }
    if (this.staged !== undefined) {
      const { expressions, places, types } = this.staged;
      const batch = expressions.run({ rowCount: rows.end - rows.start, columns: advance(rows.columns, rows.start) });
      keyColumns = batch.columns;
      this.rowStart = 0;
      this.rowEnd = batch.rowCount;
      if (this.predicates.length > 0) context.analysis?.countPassed(probe.id, batch.rowCount);
      this.columns = rows.columns.map((column, k) => places.has(k) ? batch.columns[places.get(k)!] : column);
      if (batch.rowCount > 0) {
        const keys = probe.keys.map(({ type }, k): Expr => ({ kind: "column", index: places.size + k, type }));
        const isBound = this.bind(types, keys, [], keyColumns);
        if (!isBound) throw new Error("keys that are columns have a kernel form");
      }
    } else this.passed?.count(rows.columns, rows.start, rows.end);
    this.position = this.rowStart;
    this.resume = 0;
    this.leftMatched = false;
    if (this.rowStart < this.rowEnd) this.bound!.kernel.setColumns(keyColumns);
    context.poll();
  }

  private stage(): void {
    const { probe, leftNeeded, context } = this;
    const columns = [...leftNeeded].map((index): Expr => ({ kind: "column", index, type: probe.leftTypes[index] }));
    const exprs = [...columns, ...probe.keys];
    this.staged = {
      expressions: compileExpressions(exprs, this.predicates, probe.leftTypes, context, { operator: probe.operator }),
      places: new Map([...leftNeeded].map((index, k) => [index, k])),
      types: exprs.map((expr) => expr.type),
    };
  }

  /** Compiles the kernel for the columns' dictionaries; false if impossible. */
  private bind(
    types: readonly string[],
    keys: readonly Expr[],
    predicates: readonly Expr[],
    columns: readonly Vector[],
  ): boolean {
    const { probe, context } = this, { index } = probe;
    const dictionaries = columns.map((column) => column.dictionary);
    const isSame = this.bound?.dictionaries.every((mine, k) =>
      mine === dictionaries[k] || (mine?.entries === dictionaries[k]?.entries && mine?.count === dictionaries[k]?.count)
    );
    if (isSame) return true;
    const isPlain = keys.every((key) =>
      key.kind === "column" || (formOf(key.type) !== undefined && layoutOf(key.type) !== "symbol")
    );
    const options = { operator: probe.operator, expectedRows: MORSEL_ROWS };
    if (!isPlain || !isFusable(keys, predicates, types, dictionaries, context, options)) return false;
    this.bound?.space.release();
    this.bound = undefined;
    this.passed?.close();
    this.passed = PassedRows.of(probe.id, predicates, types, dictionaries, context);
    const space = Workspace.of(context, probe.operator);
    const { compiler, predicate } = fuse(predicates, types, dictionaries, context, space, options);
    const translations = keys.map((key, k) => this.translation(k, key, dictionaries, space));
    const joinKey = joinKeyOf(compiler, keys, probe.modes, index.kind === "dense", translations);
    const compiled = probeKernel(context.heap.memory, compiler.inputs, predicate, joinKey, {
      unique: index.unique,
      keepsLeft: this.keepsLeft,
      ends: this.ends,
      marks: probe.marks !== 0 && probe.residual === undefined,
    }, index.tableBytes);
    const kernel = new BoundKernel(compiled, compiler.inputs, context, space);
    const { cells } = kernel;
    kernel.setI32(cells.table, index.table);
    kernel.setI32(cells.mask, index.mask);
    kernel.setI32(cells.next, index.next);
    kernel.setI32(cells.marks, probe.marks);
    kernel.setI32(cells.ahead, space.allocate(ROWS_AHEAD_BYTES));
    this.bound = { dictionaries, space, kernel };
    return true;
  }

  /** Between two steps. */
  private setPairsMax(count: number): void {
    const { space } = this;
    this.pairsMax = count;
    this.isFull = false;
    if (count <= this.leftRows.length) return;
    space.freeWords(this.leftRows);
    space.freeWords(this.rightRows);
    this.leftRows = space.words(count);
    this.rightRows = space.words(count);
    for (const address of this.outputs.values()) space.free(address);
    this.outputs.clear();
  }

  private translation(
    k: number,
    key: Expr,
    dictionaries: readonly (Dictionary | undefined)[],
    space: Workspace,
  ): number | undefined {
    const { kind, dictionary: right } = this.probe.modes[k];
    if (kind !== "code" || key.kind !== "column") return undefined;
    const left = dictionaries[key.index] ?? NO_DICTIONARY;
    if (left.count === 0 || sameDictionary(left, right!)) return undefined;
    const known = this.probe.translations.find((each) =>
      each.key === k && each.left.entries === left.entries && each.left.count === left.count
    );
    return known?.address ?? translate(left, right!, space, () => this.context.poll());
  }

  /** Finds the next pairs, in `leftRows` and `rightRows`. */
  private pairs(columns: readonly Vector[]): number {
    if (this.isFull) this.setPairsMax(Math.min(STEP_MAX, 4 * this.pairsMax));
    const { kernel } = this.bound!, { probe, pairsMax } = this, { cells } = kernel, from = this.position;
    const to = Math.min(this.rowEnd, from + pairsMax);
    kernel.setI32(cells.leftRows, this.leftRows.byteOffset);
    kernel.setI32(cells.rightRows, this.rightRows.byteOffset);
    kernel.setI32(cells.capacity, pairsMax);
    kernel.setI32(cells.resume, this.resume);
    this.position = kernel.run(from, to);
    this.resume = kernel.getI32(cells.resume);
    const n = kernel.getI32(cells.pairs);
    this.isFull = n > pairsMax / 2 && pairsMax < STEP_MAX;
    this.isWhole = probe.index.unique && !this.ends && n === to - from;
    this.firstRow = from;
    if (this.lastRows !== undefined && n > 0) {
      this.lastRows.find(columns[probe.lastRows!.leftTime].address, this.leftRows, this.rightRows, n);
    }
    return this.residual === undefined || n === 0 ? n : this.pairsThatPass(columns, n);
  }

  /**
   * Filters pairs by the residual. If left rows are preserved, the pair without a match follows a left row's candidates
   * and is kept if none of them passed.
   */
  private pairsThatPass(columns: readonly Vector[], n: number): number {
    const { leftRows, rightRows, keepsLeft, probe } = this, { expression, needed } = this.residual!;
    const passed = expression.run({ rowCount: n, columns: this.gather(columns, n, needed) }).columns[0].address;
    this.isWhole = false;
    const { u8 } = this.context.heap;
    let kept = 0;
    for (let i = 0; i < n; i++) {
      const right = rightRows[i];
      if (right < 0) {
        const stays = !this.leftMatched;
        this.leftMatched = false;
        if (!stays) continue;
      } else {
        if (u8[passed + i] === 0) continue;
        this.leftMatched = keepsLeft;
        if (probe.marks !== 0) u8[probe.marks + right] = 1;
      }
      leftRows[kept] = leftRows[i];
      rightRows[kept++] = right;
    }
    return kept;
  }

  private gather(left: readonly Vector[], n: number, needed: ReadonlySet<number>): Vector[] {
    const { probe, leftRows, rightRows, keepsLeft } = this, leftCount = probe.leftTypes.length;
    const whole = this.isWhole ? advance(left, this.firstRow) : left;
    return [...left, ...probe.columns].map((column, k): Vector => {
      if (!needed.has(k)) return { ...column, address: 0 };
      if (k < leftCount) return this.isWhole ? whole[k] : this.gathered(k, column, leftRows, n, false);
      return this.gathered(k, column, rightRows, n, keepsLeft);
    });
  }

  private gathered(k: number, column: Vector, rows: Int32Array, n: number, nulls: boolean): Vector {
    const { type } = column;
    let address = this.outputs.get(k);
    if (address === undefined) {
      address = this.space.allocate(outputBytes(type, this.leftRows.length));
      this.outputs.set(k, address);
    }
    gather(this.context.heap, type, column.address, rows, n, address, nulls);
    return { ...column, address };
  }

  close(): void {
    this.left?.close();
    this.unmatched?.close();
    this.unbind();
    this.residual?.expression.close();
    this.space.release();
    flushKernelRows(this.context.heap.i64);
  }
}
