/**
 * One entry contains everything about an SQL function; the binder, `functions()`, the reference and the tests read it. The files
 * beside this one contain the entries by subject, and `mod.ts` lists them.
 */
import type { IrNode } from "../../engine/compiler/ir.ts";
import type { Dictionary } from "../../storage/contract.ts";
import type { Permission } from "../../access/mod.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { Value } from "../../types/mod.ts";

/**
 * The accepted type of an argument: a type tag, or a class of types.
 *
 *     any        every type                    same     the type of the first argument that is "same"
 *     text       STRING VARCHAR SYMBOL SYMBOL_TEXT (given to kernels as text pairs), and CHAR by an implicit cast
 *     number     BYTE SHORT INT LONG FLOAT DOUBLE          integer   BYTE SHORT INT LONG
 *     time       DATE TIMESTAMP TIMESTAMP_NS
 *     wide       LONG256 BINARY GEOHASH(..) DECIMAL(..) DOUBLE[].. (batch and aggregates only)
 *     decimal    DECIMAL(..) of any digits (`emit` takes up to 18)
 *     array      DOUBLE[].. of any dimensions (batch and aggregates only)
 *
 * `emit` receives a SYMBOL argument of class "text" as a pair, and one of "SYMBOL", "any" and "same" as its code; a result of type
 * SYMBOL then uses the dictionary of the first such argument. `batch` always receives pairs.
 */
export type ArgType = string;

export interface Arg {
  name: string;
  type: ArgType;
  /** The value must be known when the statement is bound (a literal or an expression of literals). */
  constant?: boolean;
  /** The argument is optional. */
  optional?: boolean;
  /** Only for the last argument: it may be repeated. */
  variadic?: boolean;
}

export interface FunctionEntry {
  /** Lower case. Operators are entries too: "+", "=", "not", "like", "cast" (see the id). */
  name: string;
  /**
   * Overloads are entries of the same name. The binder prefers exact types, then the cheapest implicit casts, in listed
   * order.
   */
  args: Arg[];
  /** A tag, or a function of the arguments' tags and constant values. */
  returns: string | ((types: string[], constants?: readonly (Value | undefined)[]) => string);
  /**
   * propagate: null in any argument gives null (the compiler adds the tests; BOOLEAN results are false). custom: the
   * kernel handles nulls.
   */
  nulls: "propagate" | "custom";
  volatility: "immutable" | "stable" | "volatile";
  /**
   * Moves its first argument, a time, by its others. If these are constants, the moved designated timestamp is the designated timestamp
   * of a query that does not select the column itself. `keepsOrder`: rows in order of the argument are in order of the result.
   */
  movesTime?: { keepsOrder: boolean };
  /** Some values are errors. A null of this argument never is, so it protects rows that a CASE or a condition leaves out. */
  fallible?: number;
  summary: string;
  /** `gives`: the first value; required except for sources whose rows depend on the server. */
  examples: { sql: string; gives?: unknown }[];

  /**
   * Checks the constant arguments (undefined: not constant) when the call is bound. Returns the error and the argument.
   */
  check?: (constants: readonly (Value | undefined)[], types: readonly string[]) =>
    | { argument?: number; /** Offset in the argument's text in the statement. */ offset?: number; message: string }
    | undefined;

  /**
   * Replaces the call by one of another entry, depending on constants: extract('hour', t) is hour(t). Called after
   * `check`. Such an entry never occurs in a plan.
   */
  rewrite?: (constants: readonly (Value | undefined)[], types: readonly string[]) => Rewritten | undefined;

  /** With `emit` or `batch`: the value for constants, if it needs no kernel. */
  ofConstants?: (args: readonly Value[], nowMicros: bigint | undefined) => Value | undefined;
  /** Scalar: values in, value out; see the table of wasm types in ir.ts. `types` are the arguments' tags. */
  emit?: (args: IrNode[], types: string[]) => IrNode;
  /** Scalar, over columns. Text columns are pairs; results of text layout are made with `out.text`. */
  batch?: BatchFunction;
  /** With `emit`: for arguments or results of more than 64 bits, over columns. */
  wide?: BatchFunction;
  aggregate?: AggregateImplementation;
  /** Scalar, evaluated by the server before the engine runs, once for each statement. All arguments are constants. */
  served?: (server: ServerFacts, args: readonly Value[], at: number) => Value;
  /** Only with OVER: row_number, rank, lag … The window operator knows it by name. */
  window?: boolean;
  /** A permission that callers need, in addition to those for the columns in its arguments. */
  permission?: Permission;
  /** A table function: long_sequence, read_parquet, tables. The binder knows it by name. */
  table?: boolean;
}

/** Facts about the server for functions that it evaluates. */
export interface ServerFacts {
  startedMicros: bigint;
  /** Reads the settings and certificates again. Returns true if a change took effect. */
  reloadConfig(): boolean;
  log(level: "INFO" | "ERROR", message: string): void;
  /** True if there is such a table and the user sees it. */
  hasTable(name: string): boolean;
  /** Returns false if there is no such statement. @throws at `at` if it cannot be cancelled */
  cancelQuery(id: number, at: number): boolean;
}

/** A call of another entry. `args` are indices of this call's arguments, or constants. */
export interface Rewritten {
  name: string;
  args: (number | { value: Value; type: string })[];
}

/** An argument column of a batch function. */
export interface BatchColumn {
  type: string;
  /** Address of the first value; `values` is a view of the same memory. */
  address: number;
  /**
   * Typed array of the layout (ARRAY_CONSTRUCTOR); 2 elements for each row of text and i128. Symbols are given as text,
   * but see `dictionary`.
   */
  // deno-lint-ignore no-explicit-any
  values: any;
  /** The value of a constant argument. `values` still contains all rows. */
  constant?: Value;
  isConstant: boolean;
  dictionary?: Dictionary;
  /** Tests row `row` for null. */
  isNull(row: number): boolean;
  /** The bytes of row `row` of a text column, as a view of shared memory; undefined for null. */
  bytes(row: number): Uint8Array | undefined;
  /**
   * The text of row `row`, decoded (slower than `bytes`); undefined for null. Throws if a text is longer than allowed.
   */
  text(row: number): string | undefined;
}

export interface BatchOut {
  type: string;
  address: number;
  // deno-lint-ignore no-explicit-any
  values: any;
  /** Sets a row of a text result; strings are encoded, bytes are copied. undefined: null. */
  setText(row: number, value: string | Uint8Array | undefined): void;
  /** Sets a row without a copy, to bytes in shared memory that live as long as the batch (a part of an argument). */
  setView(row: number, address: number, length: number): void;
  /**
   * Makes a row of a text result `length` bytes long and charges the memory. The caller writes into the returned view.
   */
  makeText(row: number, length: number): Uint8Array;
  /** As `makeText`, but returns the address. For short texts, of which views take longer than the bytes. */
  placeText(row: number, length: number): number;
  /** The address of as many bytes, for a kernel that writes the texts of several rows, each of at most 64 KiB, and their pairs. */
  reserve(sizeBytes: number): number;
  /** Gives back the last bytes of what was reserved last. */
  giveBack(sizeBytes: number): void;
  setNull(row: number): void;
}

/**
 * The query's memory, as functions see it. Memory whose size depends on values is charged before it is allocated:
 * results and texts by `BatchOut` and `BatchColumn`, everything else here.
 */
export interface FunctionMemory {
  /** Throws if the query cannot allocate this much. For memory that is freed when the call returns. */
  need(sizeBytes: number): void;
  /** Charges memory in `state`, which lives as long as the query. */
  keep(sizeBytes: number): void;
}

export interface FunctionContext {
  heap: SharedHeap;
  memory: FunctionMemory;
  /** Start of the statement, in microseconds since 1970. */
  nowMicros: bigint;
  /** For rnd_ functions: uniform in [0, 2^32). */
  random: () => number;
  /** Position of the call in the statement, for SqlError. */
  at: number;
  /** Throws if the query is cancelled, out of time, or the server stops. Call it every 4,096 rows of slow work. */
  poll: () => void;
  user: string;
  /** Ordinal of the batch's first row in the query, for sequences that depend on the row. */
  rowOffset: number;
  /** Values that live as long as the query, for each call site: a compiled regex, a generator's state. */
  state: Map<string, unknown>;
}

export type BatchFunction = (args: BatchColumn[], out: BatchOut, rowCount: number, context: FunctionContext) => void;

/**
 * An aggregate is either `fused` (its state is a fixed number of wasm values, so it runs inside kernels) or `batch`
 * (arbitrary state for each group). Rows arrive in the table's order; states of neighbouring runs of rows are merged in
 * order (earlier, later).
 */
export type AggregateImplementation = FusedAggregate | BatchAggregate;

export interface FusedAggregate {
  kind: "fused";
  /** See `BatchAggregate.ordered`. Rows are then never spread over lanes. */
  ordered?: boolean;
  /** State slots: wasm type and start value. */
  state: (types: string[]) => { type: "i32" | "i64" | "f32" | "f64"; initial: number | bigint }[];
  /**
   * Returns the state after a row. It must ignore nulls itself. (For lanes, the compiler recognizes plain
   * `select(notNull, add(s, x), s)`.)
   */
  update: (state: IrNode[], args: IrNode[], types: string[]) => IrNode[];
  merge: (earlier: IrNode[], later: IrNode[], types: string[]) => IrNode[];
  finish: (state: IrNode[], types: string[]) => IrNode;
  /**
   * The aggregate keeps a text, whose bytes are copied when a row has a better one: true if `text` replaces `kept`. The states are the text and the
   * memory that it has, both as address | length << 32. Only records of hash tables can have them.
   */
  replaces?: (kept: IrNode, text: IrNode) => IrNode;
  /** The states of a group of rows of which only a summary is known. Without it, the aggregate has to see the rows. */
  summarised?: (rows: RowsSummary) => IrNode[];
}

/** What is known of an argument in some rows. Without a value, the last three have no meaning. */
export interface RowsSummary {
  /** i64. */
  rowCount: IrNode;
  /** Rows whose value is not null, i64. */
  valueCount: IrNode;
  /** f64 for FLOAT and DOUBLE, otherwise i64. The sum of integers may have wrapped around. */
  sum: IrNode;
  min: IrNode;
  max: IrNode;
}

export interface BatchAggregate {
  kind: "batch";
  /** True if the result depends on the order of rows by more than rounding, as that of `first`. */
  ordered?: boolean;
  /** SYMBOL arguments are codes in `values`, with their dictionary, instead of texts. */
  codes?: boolean;
  /** The same aggregate for groups by keys. */
  inRecords?: FusedAggregate;
  /** Makes the state for one run of rows. */
  create: (types: string[], constants: (Value | undefined)[], context: FunctionContext) => BatchAggregateState;
}

export interface BatchAggregateState {
  /** Row i belongs to group groups[i]; group numbers are dense. `groups` undefined: all rows are in group 0. */
  update(groups: Int32Array | undefined, args: BatchColumn[], rowCount: number): void;
  /** Merges group g of `later` into this state's group `mapping[g]`. */
  merge(later: BatchAggregateState, mapping: Int32Array): void;
  /** Writes groups 0 … groupCount-1. */
  finish(out: BatchOut, groupCount: number): void;
  /** Approximate bytes of JS heap, which count against the query's limit. */
  sizeBytes(): number;
}

/** "name(TYPE,TYPE)": unique in the catalogue, with concrete argument types. */
export function functionId(name: string, types: readonly string[]): string {
  return `${name}(${types.join(",")})`;
}
