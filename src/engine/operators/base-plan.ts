/** The input of a pipeline as data: scans, other operators and joins, and how their rows are read. */
import type { Column, Expr, JoinNode, ScanNode } from "../../sql/plan.ts";
import type { Dictionary, ScanSource } from "../../storage/contract.ts";
import type { Changes, Operator, Vector } from "../contract.ts";
import type { Reading } from "../physical/plan.ts";
import type { Morsel } from "./morsel.ts";
import type { Bound } from "../bounds.ts";

export type PipelineBase =
  | { kind: "scan"; node: ScanNode; source: ScanSource; reader?: number }
  | { kind: "operator"; input: Operator }
  | { kind: "join"; join: JoinBase };

/** Opens the base of a reading. The requesting operator closes it. */
export type OpenBase = (reading: Reading) => PipelineBase;

/** A join as the base of a pipeline. */
export interface JoinBase {
  /** The columns of the left side's base, then the right side's. */
  readonly columns: readonly Column[];
  /** The plan for reading it by morsels; undefined if that is impossible. Reads the right side to its end. */
  plan(): BasePlan | undefined;
  /** The columns' dictionaries, as far as they are known before the first row. Undefined: none of them. */
  dictionaries(): (Dictionary | undefined)[] | undefined;
  /** Reads all rows in order. */
  open(needed: ReadonlySet<number>): RowReader;
  /** As of operators. `reader`: from `open`, which the join closes, or uses again at the next `open`. */
  rewind(reader?: RowReader): boolean;
  /** As of operators. "anew": the right side is read again, and its symbols may have other dictionaries. */
  rebind(changes: Changes): "kept" | "anew" | undefined;
  close(): void;
}

/** A base that any thread can read by morsels. `reader`: id of the operator whose statistics count its rows. */
export type BasePlan =
  | { kind: "scan"; node: ScanNode; reader?: number }
  /** `predicates`: on the left rows, over the left base's columns. */
  | { kind: "join"; left: BasePlan; predicates: readonly Expr[]; bounds: readonly Bound[]; probe: JoinProbe }
  | { kind: "splice"; rows: SplicedRows };

/** Rows start … end-1 of columns; columns that are not needed have address 0. Valid until the next call. */
export interface Rows {
  columns: Vector[];
  start: number;
  end: number;
  /** The base of row ids. */
  rowBase: bigint;
}

export interface RowReader {
  /** Returns undefined at the end of all rows, or of the morsel. */
  next(): Rows | undefined;
  close(): void;
}

export interface MorselReader extends RowReader {
  start(morsel: Morsel): void;
  /**
   * Call it before morsels that any thread may read: what the reader has learnt from morsels before does not count for the next ones, so
   * that the groups of rows do not depend on the thread.
   */
  restart?(): void;
  /** Releases what is pinned, so that it can read again. False, or not there, if it has to be made anew. */
  rewind?(): boolean;
  /** Reads the rows of a plan that differs in sources and constants of conditions only, after `rewind`. Likewise. */
  rebind?(plan: BasePlan, predicates: readonly Expr[]): boolean;
}

/**
 * Representation of keys as words: numbers as they are, symbols as codes of the right side's dictionary, texts, and
 * columns of at least 128 bits.
 */
export interface KeyMode {
  kind: "value" | "code" | "text" | "wide";
  /** For codes: the dictionary of the right side's column. */
  dictionary?: Dictionary;
  /** Slots of a dense index. */
  dense?: { low: bigint; count: bigint; step: number };
}

/**
 * Maps codes of a left dictionary to codes of the right one: i32 values from code -1 on, -2 for texts that do not exist
 * there.
 */
export interface Translation {
  key: number;
  left: Dictionary;
  address: number;
}

export interface JoinIndex {
  kind: "dense" | "hash";
  table: number;
  tableBytes: number;
  mask: number;
  next: number;
  /** No key occurs twice. */
  unique: boolean;
}

/** For ASOF and LT joins: the last right row of each group by time. The rows of the index are groups then. */
export interface LastRowsIndex {
  /** The column of the left base. */
  leftTime: number;
  /** Of the right rows, in order; the first `nulls` have no time. */
  times: number;
  nulls: number;
  /** The number of each right row's group, as i32. */
  groups: number;
  groupCount: number;
  /** The last row of each group, before every `spacing` rows from the nulls on: lists of i32, -1 for none. */
  snapshots: number;
  spacing: number;
  isStrict: boolean;
  tolerance?: bigint;
}

export interface JoinProbe {
  /** Id of the join in the physical plan. */
  id: number;
  type: JoinNode["type"];
  /** Types of the left base's columns, which `keys` refer to. */
  leftTypes: readonly string[];
  keys: readonly Expr[];
  modes: readonly KeyMode[];
  index: JoinIndex;
  /** The build side. */
  columns: readonly Vector[];
  rowCount: number;
  /** One byte for each right row, 1 if it has a match; 0 if not needed. */
  marks: number;
  /** Over the left base's columns and the right side's. */
  residual?: Expr;
  translations: readonly Translation[];
  lastRows?: LastRowsIndex;
  operator: string;
}

/** A side of a SPLICE join, in time order: addresses of its times, and of the numbers of its rows' groups, as i32. */
export interface SplicedSide {
  columns: readonly Vector[];
  rowCount: number;
  times: number;
  groups: number;
}

/** Rows of both sides within a range of time. */
export interface SplicedRange {
  leftStart: number;
  leftEnd: number;
  rightStart: number;
  rightEnd: number;
}

/** The kept rows of a SPLICE join. */
export interface SplicedRows {
  /** Id of the join in the physical plan; undefined if its pairs are counted elsewhere. */
  id?: number;
  left: SplicedSide;
  right: SplicedSide;
  /** Rows with equal keys are a group. */
  groupCount: number;
  ranges: readonly SplicedRange[];
  /** Address of the last rows of each group before each range, -1 for none, as i32: those of the left side, then those of the right side. */
  states: number;
}
