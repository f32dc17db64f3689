/**
 * One entry says all there is to know of a SQL function: the binder, `functions()`, the reference and the tests read it.
 * Files beside this one hold the entries by subject and are listed in `mod.ts`.
 */
import type { IrNode } from "../../engine/compiler/ir.ts";
import type { Dictionary } from "../../storage/contract.ts";
import type { Permission } from "../../requirement.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { Value } from "../../types/mod.ts";

/**
 * What an argument may be: a type tag, or a class of them.
 *
 *     any        every type                    same     the type of the first argument that is "same"
 *     text       STRING VARCHAR SYMBOL SYMBOL_TEXT (given to kernels as text pairs), and CHAR by an implicit cast
 *     number     BYTE SHORT INT LONG FLOAT DOUBLE          integer   BYTE SHORT INT LONG
 *     time       DATE TIMESTAMP TIMESTAMP_NS
 *     wide       LONG256 BINARY GEOHASH(..) DECIMAL(..) DOUBLE[].. (batch and aggregates only)
 *     decimal    DECIMAL(..) of any digits (likewise)
 *     array      DOUBLE[].. of any dimensions (likewise)
 *
 * A SYMBOL argument under "text" comes to `emit` as a pair; under "SYMBOL", "any" and "same" as its code, and then a result of
 * type SYMBOL has the dictionary of the first such argument. (`batch` gets pairs always.)
 */
export type ArgType = string;

export interface Arg {
  name: string;
  type: ArgType;
  /** Must be known when the statement is bound (a literal or an expression of literals). */
  constant?: boolean;
  /** May be left out. */
  optional?: boolean;
  /** The last argument may be repeated. */
  variadic?: boolean;
}

export interface FunctionEntry {
  /** Lower case. Operators are entries too: "+", "=", "not", "like", "cast" (see the id). */
  name: string;
  /** Overloads are entries of the same name; the binder prefers exact types, then the cheapest implicit casts in listed order. */
  args: Arg[];
  /** A tag, or worked out from the arguments' tags, and from those that are constants. */
  returns: string | ((types: string[], constants?: readonly (Value | undefined)[]) => string);
  /** propagate: null in any argument gives null (the compiler adds the tests; BOOLEAN results give false). custom: the kernel sees nulls. */
  nulls: "propagate" | "custom";
  volatility: "immutable" | "stable" | "volatile";
  summary: string;
  /** `gives`: the first value; required but for sources whose rows depend on the server. */
  examples: { sql: string; gives?: unknown }[];

  /** Looks at the arguments that are constants (undefined: not constant) when the call is bound; says what is wrong and with which. */
  check?: (constants: readonly (Value | undefined)[], types: readonly string[]) =>
    | { argument?: number; /** Into the argument's text in the statement. */ offset?: number; message: string }
    | undefined;

  /** Makes another call of this one where constants decide which: extract('hour', t) is hour(t). Called after `check`; such an entry is never in a plan. */
  rewrite?: (constants: readonly (Value | undefined)[], types: readonly string[]) => Rewritten | undefined;

  /** Scalar: values in, value out; see the table of wasm types in ir.ts. `types` are the arguments' tags. */
  emit?: (args: IrNode[], types: string[]) => IrNode;
  /** Scalar: over columns. Text columns come as pairs; results of layout text are made with `out.text`. */
  batch?: BatchFunction;
  aggregate?: AggregateImplementation;
  /** Only usable with OVER: row_number, rank, lag … The window operator knows it by name. */
  window?: boolean;
  /** What its callers need, besides that of the columns in its arguments. */
  permission?: Permission;
  /** A source of rows: long_sequence, read_parquet, tables. The binder knows it by name. */
  table?: boolean;
}

/** The call of another entry: `args` are places of this call's arguments, or constants. */
export interface Rewritten {
  name: string;
  args: (number | { value: Value; type: string })[];
}

/** A column given to a batch function. */
export interface BatchColumn {
  type: string;
  /** Address of the first value; `values` views the same. */
  address: number;
  /** Typed array of the layout (ARRAY_CONSTRUCTOR); 2 elements a row for text and i128. Symbols come as text, but see `dictionary`. */
  // deno-lint-ignore no-explicit-any
  values: any;
  /** Set when the argument is a constant: the value. `values` still has all rows. */
  constant?: Value;
  isConstant: boolean;
  dictionary?: Dictionary;
  /** The bytes of row `row` of a text column as a view of shared memory; undefined for null. */
  bytes(row: number): Uint8Array | undefined;
  /** The text of row `row`; undefined for null. Decodes: slower than `bytes`. Throws where a long text goes beyond the limits. */
  text(row: number): string | undefined;
}

export interface BatchOut {
  type: string;
  address: number;
  // deno-lint-ignore no-explicit-any
  values: any;
  /** Sets a row of a text result; strings are encoded, bytes copied. undefined: null. */
  setText(row: number, value: string | Uint8Array | undefined): void;
  /** Sets a row to bytes that lie in shared memory for as long as the batch (a piece of an argument), without a copy. */
  setView(row: number, address: number, length: number): void;
  /** Makes a row of a text result `length` bytes long, charged first; the caller writes them into the view. */
  makeText(row: number, length: number): Uint8Array;
  setNull(row: number): void;
}

/**
 * The query's memory, as functions see it. Whatever a function makes of a size that depends on values is charged before it is
 * made: results and texts by `BatchOut` and `BatchColumn`, the rest here.
 */
export interface FunctionMemory {
  /** Throws if the query has not so many bytes left. For what is gone when the call returns. */
  need(sizeBytes: number): void;
  /** Charges what lives as long as the query, in `state`. */
  keep(sizeBytes: number): void;
}

export interface FunctionContext {
  heap: SharedHeap;
  memory: FunctionMemory;
  /** Microseconds since 1970 when the statement started. */
  nowMicros: bigint;
  /** For rnd_ functions: uniform in [0, 2^32). */
  random: () => number;
  /** Position of the call in the statement, for SqlError. */
  at: number;
  /** Throws when the query is cancelled, out of time or the server stops: call it every 4,096 rows of slow work. */
  poll: () => void;
  user: string;
  /** Ordinal of the batch's first row within the query, for sequences that depend on the row. */
  rowOffset: number;
  /** Something that lives as long as the query, one per call site: a compiled regex, a generator's state. */
  state: Map<string, unknown>;
}

export type BatchFunction = (args: BatchColumn[], out: BatchOut, rowCount: number, context: FunctionContext) => void;

/**
 * An aggregate is either `fused` (state in a fixed number of wasm values, so it runs inside kernels) or `batch` (state of any
 * shape by group). Rows come in the table's order; states of neighbouring runs of rows are merged in order (earlier, later).
 */
export type AggregateImplementation = FusedAggregate | BatchAggregate;

export interface FusedAggregate {
  kind: "fused";
  /** Does the answer depend on the order of the rows by more than rounding (first, last)? Then rows are never spread over lanes. */
  ordered?: boolean;
  /** State slots: wasm type and start value. */
  state: (types: string[]) => { type: "i32" | "i64" | "f32" | "f64"; initial: number | bigint }[];
  /** New state after a row. Must itself leave out nulls. (The compiler recognises plain `select(notNull, add(s, x), s)` shapes for lanes.) */
  update: (state: IrNode[], args: IrNode[], types: string[]) => IrNode[];
  merge: (earlier: IrNode[], later: IrNode[], types: string[]) => IrNode[];
  finish: (state: IrNode[], types: string[]) => IrNode;
}

export interface BatchAggregate {
  kind: "batch";
  /** SYMBOL arguments come as codes in `values`, with their dictionary, not as texts. */
  codes?: boolean;
  /** Makes the state for one run of rows. */
  create: (types: string[], constants: (Value | undefined)[], context: FunctionContext) => BatchAggregateState;
}

export interface BatchAggregateState {
  /** Row i belongs to group groups[i]; group numbers grow densely. `groups` undefined: all rows are group 0. */
  update(groups: Int32Array | undefined, args: BatchColumn[], rowCount: number): void;
  /** Adds `later`'s group g to this state's group `mapping[g]`. */
  merge(later: BatchAggregateState, mapping: Int32Array): void;
  /** Writes groups 0 … groupCount-1. */
  finish(out: BatchOut, groupCount: number): void;
  /** About how many bytes of JS heap it holds: counted against the query's limit. */
  sizeBytes(): number;
}

/** "name(TYPE,TYPE)": unique in the catalogue together with the concrete argument types. */
export function functionId(name: string, types: readonly string[]): string {
  return `${name}(${types.join(",")})`;
}
