/**
 * The index over the keys of a join's build side, and how its keys are compared: integers of a small range by a dense table, others by
 * a hash table. It finds the rows of a key, or the number of its group.
 */
import type { Expr } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { NO_DICTIONARY, sameDictionary, Workspace } from "../columns.ts";
import { BoundKernel } from "../compiler/binding.ts";
import { type CompiledKernel } from "../compiler/aggregate.ts";
import { ExpressionCompiler, formOf } from "../compiler/expression.ts";
import { bucketBytes, groupIndexKernel, indexKernel, type JoinKey, rangeKernel } from "../compiler/join.ts";
import { ROWS_AHEAD_BYTES } from "../compiler/rows-ahead.ts";
import type { QueryContext, Vector } from "../contract.ts";
import { denseSlots, isByCodes } from "../physical/join.ts";
import type { JoinKeyKind, PhysicalProbe } from "../physical/plan.ts";
import { typesOf } from "../physical/reading.ts";
import type { JoinIndex, JoinProbe, KeyMode, Translation } from "./base-plan.ts";
import type { KeptRows } from "./input.ts";
import { fillInParts } from "./join-index-parts.ts";
import { joinKeyOf, noneOf, translate } from "./join-probe.ts";

/** How the keys of a join are compared. `dictionaries`: of the left base's columns, if known before its rows. */
export function keyModes(
  { leftKeys, keyKinds, expectedLeftRows }: PhysicalProbe,
  kept: KeptRows,
  dictionaries: readonly (Dictionary | undefined)[] | undefined,
  context: QueryContext,
): KeyMode[] {
  return leftKeys.map((key, k) => {
    const known = key.kind === "column" ? dictionaries?.[key.index] : undefined;
    const mode = keyMode(keyKinds[k], kept.computed[k], kept.rowCount, known, expectedLeftRows);
    if (keyKinds[k] === "symbol") context.chose?.(mode.kind === "code" ? "symbols by codes" : "symbols by texts");
    return mode;
  });
}

function keyMode(
  kind: JoinKeyKind,
  right: Vector,
  rightRows: number,
  left: Dictionary | undefined,
  leftRows: number,
): KeyMode {
  if (kind !== "symbol") return { kind };
  const dictionary = right.dictionary ?? NO_DICTIONARY;
  const isSame = left !== undefined && sameDictionary(left, dictionary);
  const leftSide = left && { entries: left.count, rows: leftRows };
  const byCodes = isByCodes(leftSide, { entries: dictionary.count, rows: rightRows }, isSame);
  return byCodes ? { kind: "code", dictionary } : { kind: "text" };
}

/** For keys that are compared by codes of different dictionaries. */
function translationsOf(
  keys: readonly Expr[],
  modes: readonly KeyMode[],
  dictionaries: readonly (Dictionary | undefined)[] | undefined,
  space: Workspace,
  context: QueryContext,
): Translation[] {
  return keys.flatMap((key, k) => {
    const dictionary = key.kind === "column" ? dictionaries?.[key.index] : undefined, mode = modes[k];
    if (mode.kind !== "code" || !dictionary?.count || sameDictionary(dictionary, mode.dictionary!)) return [];
    const address = translate(dictionary, mode.dictionary!, space, () => context.poll());
    return [{ key: k, left: dictionary, address }];
  });
}

/** What differs between the kinds of joins. */
type ProbeKind = Pick<JoinProbe, "type" | "marks" | "residual" | "lastRows">;

/** A probe of kept rows with an index over them. `dictionaries`: as for `keyModes`. */
export function probeOf(
  { id, left, leftKeys: keys }: PhysicalProbe,
  kept: KeptRows,
  modes: readonly KeyMode[],
  index: JoinIndex,
  dictionaries: readonly (Dictionary | undefined)[] | undefined,
  kind: ProbeKind,
  space: Workspace,
  context: QueryContext,
): JoinProbe {
  return {
    id,
    leftTypes: typesOf(left.baseColumns),
    keys,
    modes,
    index,
    columns: kept.columns.map((column) => ({ ...column })),
    rowCount: kept.rowCount,
    translations: translationsOf(keys, modes, dictionaries, space, context),
    operator: space.operator,
    ...kind,
  };
}

/** The values of an integer key. */
export interface KeyRange {
  low: bigint;
  high: bigint;
  nulls: number;
}

/** A table has at most this share of its buckets in use. */
const FILLED = 1 / 1.4;

/** Hash tables of groups begin with this many buckets, and grow by this factor: the work of filling one that is too small is lost. */
const FIRST_BUCKETS = 1 << 17, GROWTH = 8;

const FILL_BYTES = 1 << 24;

/** Makes the index over kept rows. `space` keeps it. */
export class IndexBuilder {
  /** By key; undefined if it is not an integer. */
  readonly ranges: (KeyRange | undefined)[];
  private readonly own: Workspace;
  private readonly keys: Expr[];
  private readonly isDense: boolean;
  private readonly slots: number;

  /** Adds the slots of a dense index to `modes`. */
  constructor(
    private readonly kept: KeptRows,
    private readonly modes: readonly KeyMode[],
    private readonly space: Workspace,
    private readonly context: QueryContext,
    private readonly operator: string,
  ) {
    this.own = Workspace.of(context, operator);
    const { vectors } = kept.store;
    this.keys = kept.computed.map((vector) => ({
      kind: "column",
      index: vectors.indexOf(vector),
      type: vector.type,
    }));
    try {
      this.ranges = this.keys.map((key, k) => this.rangeOf(key, modes[k]));
    } catch (error) {
      this.own.release();
      throw error;
    }
    const dense = denseSlots(this.ranges, kept.rowCount);
    modes.forEach((mode, k) => mode.dense = dense?.keys[k]);
    this.isDense = dense !== undefined;
    this.slots = dense?.slots ?? 1;
    context.chose?.(this.isDense ? "dense index" : "hash index");
  }

  /** Rows by key, and their next rows with the same key. */
  rows(): JoinIndex {
    const { space, context, keys, modes, operator, kept: { rowCount, store: { vectors } } } = this;
    const compiler = this.compiler(), key = joinKeyOf(compiler, keys, modes, this.isDense);
    const buckets = this.isDense ? this.slots : bucketsFor(rowCount);
    const tableBytes = this.tableBytes(key, buckets), table = space.allocate(tableBytes);
    const mask = this.isDense ? 0 : buckets - 1, next = space.allocate(Math.max(1, rowCount) * 4);
    const index = { kind: key.kind, table, tableBytes, mask, next };
    const filled = fillInParts({ vectors, rowCount, keys, modes }, { ...index, buckets }, context, operator);
    if (filled !== undefined) return { ...index, unique: filled.unique };
    this.clear(table, tableBytes);
    const kernel = this.bound(compiler, indexKernel(context.heap.memory, compiler.inputs, key)), { cells } = kernel;
    kernel.setI32(cells.table, table);
    kernel.setI32(cells.mask, mask);
    kernel.setI32(cells.next, next);
    kernel.setI32(cells.last, rowCount - 1);
    kernel.setI32(cells.repeated, 0);
    if (rowCount > 0) kernel.run(0, rowCount);
    return { ...index, unique: kernel.getI32(cells.repeated) === 0 };
  }

  /** Groups by key, as if they were rows without equal ones, and the group of each row. */
  groups(): { index: JoinIndex; groups: Int32Array; groupCount: number } {
    const { space, kept: { rowCount } } = this;
    const compiler = this.compiler(), key = joinKeyOf(compiler, this.keys, this.modes, this.isDense);
    const bucketsMax = bucketsFor(rowCount),
      tableBytesMax = this.tableBytes(key, this.isDense ? this.slots : bucketsMax);
    const compiled = groupIndexKernel(this.context.heap.memory, compiler.inputs, key, tableBytesMax);
    const kernel = this.bound(compiler, compiled), { cells } = kernel, groups = space.words(Math.max(1, rowCount));
    kernel.setI32(cells.groups, groups.byteOffset);
    kernel.setI32(cells.ahead, this.own.allocate(ROWS_AHEAD_BYTES));
    for (let buckets = Math.min(FIRST_BUCKETS, bucketsMax);; buckets = Math.min(GROWTH * buckets, bucketsMax)) {
      const tableBytes = this.tableBytes(key, this.isDense ? this.slots : buckets);
      const table = space.allocate(tableBytes), mask = this.isDense ? 0 : buckets - 1;
      this.clear(table, tableBytes);
      kernel.setI32(cells.table, table);
      kernel.setI32(cells.mask, mask);
      kernel.setI32(cells.groupCount, 0);
      kernel.setI32(cells.groupsMax, this.isDense || buckets === bucketsMax ? rowCount : Math.floor(buckets * FILLED));
      if (rowCount === 0 || kernel.run(0, rowCount) === rowCount) {
        const index = { kind: key.kind, table, tableBytes, mask, next: 0, unique: true } as const;
        return { index, groups, groupCount: kernel.getI32(cells.groupCount) };
      }
      space.free(table);
    }
  }

  /** `buckets`: or slots. */
  private tableBytes(key: JoinKey, buckets: number): number {
    return buckets * (key.kind === "dense" ? 4 : bucketBytes(key.words.length));
  }

  private clear(address: number, sizeBytes: number): void {
    const { heap } = this.context;
    for (let at = address; at < address + sizeBytes; at += FILL_BYTES) {
      this.context.poll();
      heap.u8.fill(0, at, Math.min(at + FILL_BYTES, address + sizeBytes));
    }
  }

  private compiler(): ExpressionCompiler {
    const { kept: { store: { types, vectors } }, context, own } = this;
    return new ExpressionCompiler(types, vectors.map((vector) => vector.dictionary), context, own);
  }

  private bound(compiler: ExpressionCompiler, compiled: CompiledKernel): BoundKernel {
    const kernel = new BoundKernel(compiled, compiler.inputs, this.context, this.own);
    kernel.setColumns(this.kept.store.vectors);
    return kernel;
  }

  private rangeOf(key: Expr, mode: KeyMode): KeyRange | undefined {
    if (mode.kind === "code") return { low: 0n, high: BigInt(mode.dictionary!.count) - 1n, nulls: 0 };
    const form = formOf(key.type);
    if (mode.kind !== "value" || form === "f32" || form === "f64") return undefined;
    const compiler = this.compiler(), joinKey = joinKeyOf(compiler, [key], [mode], false);
    if (joinKey.kind !== "hash") return undefined;
    const { heap } = this.context, { rowCount } = this.kept;
    const kernel = this.bound(
      compiler,
      rangeKernel(heap.memory, compiler.inputs, joinKey.words[0], noneOf(key.type, mode)),
    );
    const { cells } = kernel;
    kernel.setI64(cells.low, (1n << 63n) - 1n);
    kernel.setI64(cells.high, -(1n << 63n));
    const nulls = rowCount > 0 ? kernel.run(0, rowCount) : 0;
    const at = kernel.block / 8;
    return { low: heap.i64[at + cells.low], high: heap.i64[at + cells.high], nulls };
  }

  close(): void {
    this.own.release();
  }
}

function bucketsFor(rowCount: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(64, rowCount / FILLED)));
}
