/** What lies under a pipeline, as data: scans, other operators and joins, and how their rows are read. */
import type { Column, Expr, JoinNode, ScanNode } from "../../sql/plan.ts";
import type { Dictionary, ScanSource } from "../../storage/contract.ts";
import type { Operator, Vector } from "../contract.ts";
import type { Reading } from "../physical/plan.ts";
import type { Bound, Morsel } from "./morsels.ts";

export type PipelineBase =
  | { kind: "scan"; node: ScanNode; source: ScanSource; reader?: number }
  | { kind: "operator"; input: Operator }
  | { kind: "join"; join: JoinBase };

/** Opens what a reading reads from. The operator that asks for it closes it. */
export type OpenBase = (reading: Reading) => PipelineBase;

/** A join as it lies under a pipeline. */
export interface JoinBase {
  /** The columns of the left side's base, then the right side's. */
  readonly columns: readonly Column[];
  /** How to read it by morsels; undefined where that cannot be. The right side is read to its end. */
  plan(): BasePlan | undefined;
  /** All rows in order. */
  open(needed: ReadonlySet<number>): RowReader;
  close(): void;
}

/** A base that any thread can read by morsels. `reader` is the id of the operator that counts its rows. */
export type BasePlan =
  | { kind: "scan"; node: ScanNode; reader?: number }
  /** `predicates`: of the left rows, over the left base's columns. */
  | { kind: "join"; left: BasePlan; predicates: readonly Expr[]; bounds: readonly Bound[]; probe: JoinProbe };

/** Rows start … end-1 of columns; those not needed have address 0. Valid until the next call. */
export interface Rows {
  columns: Vector[];
  start: number;
  end: number;
  /** What row ids start from. */
  rowBase: bigint;
}

export interface RowReader {
  /** Undefined at the end: of all rows, or of the morsel. */
  next(): Rows | undefined;
  close(): void;
}

export interface MorselReader extends RowReader {
  start(morsel: Morsel): void;
}

/** How keys become words: numbers as they are, symbols as codes of the right side's dictionary, texts, and columns of 128 bits or more. */
export interface KeyMode {
  kind: "value" | "code" | "text" | "wide";
  /** Of the right side's column, for codes. */
  dictionary?: Dictionary;
  /** Slots of a dense index. */
  dense?: { low: bigint; count: bigint; step: number };
}

/** Codes of a left dictionary as codes of the right one: i32 from code -1 on, -2 for texts that are not there. */
export interface Translation {
  key: number;
  left: Dictionary;
  address: number;
}

export interface JoinIndex {
  kind: "dense" | "hash";
  table: number;
  mask: number;
  next: number;
  /** No key comes twice. */
  unique: boolean;
}

export interface JoinProbe {
  /** Of the join in the physical plan. */
  id: number;
  type: JoinNode["type"];
  /** Of the left base's columns, over which `keys` are. */
  leftTypes: readonly string[];
  keys: readonly Expr[];
  modes: readonly KeyMode[];
  index: JoinIndex;
  /** The right side. */
  columns: readonly Vector[];
  rowCount: number;
  /** A byte for each right row, 1 when it has a partner; 0 where nobody asks. */
  marks: number;
  /** Over the left base's columns and the right side's. */
  residual?: Expr;
  translations: readonly Translation[];
  operator: string;
}
