/**
 * The syntax tree: the structure of the text, before names are resolved. `at` is a node's offset in the original text,
 * in UTF-16 units: the offset of the operator for binary and postfix operators, otherwise of the first token.
 */

/** An identifier as written, without its quotes. */
export interface Name {
  readonly text: string;
  readonly at: number;
  readonly quoted: boolean;
}

/**
 * `spelling`: as written, if that is not the usual form (keywords in lower case, `!=`, texts in quotes). It is shown in names of
 * unnamed result columns and means nothing else.
 */
export type Expression =
  | { kind: "null"; at: number; spelling?: string }
  | { kind: "boolean"; at: number; value: boolean; spelling?: string }
  /** `text` as written, with underscores and suffix ("1_000", "2.5e3", "7L", "1.50m", "0xff"). */
  | { kind: "number"; at: number; text: string }
  /** `value` without quotes, with '' unescaped. */
  | { kind: "string"; at: number; value: string; spelling?: string }
  /** `#u33d`, `#u33d/12`, `##0101`, as written. */
  | { kind: "geohash"; at: number; text: string }
  /** $1, $2 …, counted from 0. Also `?` if the wire allows it. */
  | { kind: "parameter"; at: number; index: number }
  /** A DECLARE variable, without the @. */
  | { kind: "variable"; at: number; name: string }
  /** `a`, `t.a`, `t."a b"`, `s.t.a`. */
  | { kind: "column"; at: number; path: Name[] }
  /**
   * A column of the query around a correlated sub-query. `index`: its ordinal among the outer columns that the
   * sub-query uses. Only the binder creates these nodes.
   */
  | { kind: "outer"; at: number; index: number }
  /** `*` or `t.*` in a select list or as count's argument. */
  | { kind: "star"; at: number; table?: Name }
  /** Prefix operators: "-", "+", "not", "~". */
  | { kind: "unary"; at: number; operator: string; operand: Expression }
  /**
   * Infix operators, lower case: + - * / % || & ^ | = != < <= > >= ~ !~ << <<= >> >>= and or
   * like ilike "not like" "not ilike". (`<>` is given as !=.)
   */
  | { kind: "binary"; at: number; operator: string; left: Expression; right: Expression; spelling?: string }
  /** `spelling`: of NULL. */
  | { kind: "isNull"; at: number; operand: Expression; negated: boolean; spelling?: string }
  | { kind: "between"; at: number; operand: Expression; low: Expression; high: Expression; negated: boolean }
  /** `x in (a, b)`, or `x in 'interval'` and `x in expr` with one item and `bare: true`. */
  | { kind: "in"; at: number; operand: Expression; items: Expression[]; bare: boolean; negated: boolean }
  | { kind: "inQuery"; at: number; operand: Expression; query: Query; negated: boolean }
  /** `x::type` (`style` "::", at the ::) and `cast(x as type)` ("cast", at the word). */
  | { kind: "cast"; at: number; operand: Expression; type: TypeName; style: "::" | "cast" }
  | {
    kind: "case";
    at: number;
    operand?: Expression;
    branches: { when: Expression; then: Expression }[];
    otherwise?: Expression;
  }
  | FunctionCall
  /** A scalar sub-query. */
  | { kind: "query"; at: number; query: Query }
  | { kind: "exists"; at: number; query: Query }
  | { kind: "array"; at: number; items: Expression[] }
  /** `a[1]`, `a[2:3]`, `a[1, 2:]`. */
  | {
    kind: "index";
    at: number;
    operand: Expression;
    subscripts: ({ index: Expression } | { from?: Expression; to?: Expression })[];
  }
  /** `(row).name`: a field of a composite value. */
  | { kind: "field"; at: number; operand: Expression; name: Name }
  /** A parenthesised list of two or more, where the dialect allows one: `on (a, b)`. */
  | { kind: "list"; at: number; items: Expression[] };

export interface FunctionCall {
  kind: "call";
  at: number;
  /** As written; names are case-insensitive. A schema prefix (`pg_catalog.`) is in `schema`. */
  name: string;
  schema?: string;
  args: Expression[];
  distinct: boolean;
  /** `string_agg(x, ',' order by y)` */
  orderBy?: OrderItem[];
  ignoreNulls: boolean;
  /** Position of IGNORE NULLS or RESPECT NULLS. */
  nullsAt?: number;
  over?: Window | { reference: Name };
  /** Written between its first argument and the others: `hash within (prefix, …)`. */
  isInfix?: boolean;
  /** `extract(unit from ts)` becomes a call of "extract" with a string literal as first argument. */
}

export interface Window {
  at: number;
  /** An earlier named window that this one extends. */
  base?: Name;
  partitionBy: Expression[];
  /** Position of PARTITION BY. */
  partitionAt?: number;
  orderBy: OrderItem[];
  frame?: Frame;
}

export interface Frame {
  at: number;
  unit: "rows" | "range" | "groups" | "cumulative";
  start: FrameBound;
  end: FrameBound;
  exclude?: "current row" | "no others" | "group" | "ties";
}

export type FrameBound =
  | { kind: "current row"; at: number }
  /** `wordAt`: position of PRECEDING or FOLLOWING. */
  | { kind: "unbounded preceding" | "unbounded following"; at: number; wordAt: number }
  /** `unit` is given for RANGE: "minute" and so on. */
  | { kind: "preceding" | "following"; at: number; wordAt: number; offset: Expression; unit?: Name };

/**
 * `int`, `double precision`, `decimal(10, 2)`, `geohash(4c)`, `double[][]`. `text` is in lower case, with single blanks
 * between words.
 */
export interface TypeName {
  at: number;
  /** In lower case. */
  name: string;
  spelling?: string;
  /** As written between the parentheses: ["10", "2"], ["4c"]. */
  parameters: string[];
  dimensions: number;
}

export interface OrderItem {
  at: number;
  expression: Expression;
  descending: boolean;
  nulls?: "first" | "last";
}

export interface SelectItem {
  at: number;
  expression: Expression;
  alias?: Name;
}

export type Query = Select | SetOperation;

/** A query of WITH. `recursive`: WITH RECURSIVE, so it may refer to itself. */
export interface CommonTable {
  name: Name;
  columnNames?: Name[];
  query: Query;
  recursive: boolean;
  /** Where its text ends. */
  end: number;
}

/** A variable of DECLARE. `assignAt`: position of `:=`. */
export interface Declaration {
  name: string;
  at: number;
  assignAt: number;
  value: Expression;
  overridable: boolean;
}

export interface TextRange {
  from: number;
  to: number;
}

export interface Select {
  kind: "select";
  at: number;
  declares: Declaration[];
  with: CommonTable[];
  /** Where the text of DECLARE and WITH is. */
  prelude?: TextRange;
  distinct: boolean;
  distinctAt: number;
  /** A bare table (`trades where …`) has one `star` item and `bare: true`. */
  items: SelectItem[];
  bare: boolean;
  from?: Source;
  where?: Expression;
  whereAt?: number;
  sampleBy?: SampleBy;
  latestOn?: LatestOn;
  groupBy?: { at: number; items: Expression[] };
  having?: Expression;
  havingAt?: number;
  windows: { name: Name; window: Window }[];
  pivot?: Pivot;
  orderBy: OrderItem[];
  orderByAt?: number;
  limit?: Limit;
}

export interface SetOperation {
  kind: "set";
  at: number;
  declares: Select["declares"];
  with: CommonTable[];
  /** Where the text of DECLARE and WITH is. */
  prelude?: TextRange;
  operator: "union" | "union all" | "except" | "except all" | "intersect" | "intersect all";
  left: Query;
  right: Query;
  /** Offset of the right query, including its parenthesis and its DECLARE and WITH. */
  rightAt: number;
  orderBy: OrderItem[];
  orderByAt?: number;
  limit?: Limit;
}

/** `limit a`, `limit a, b`, `limit , b`. With `offset`, `low` is the count, if there is one. */
export interface Limit {
  at: number;
  low?: Expression;
  high?: Expression;
  offset?: Expression;
}

export interface SampleBy {
  at: number;
  /** As written: "15m", "h". */
  interval: { text: string; at: number } | Expression;
  from?: Expression;
  to?: Expression;
  /** NONE, NULL, PREV, PREV of another column, LINEAR or an expression for each column, in the written order. Undefined without FILL. */
  fill?: {
    at: number;
    items: (
      | { kind: "none" | "null" | "prev" | "linear"; at: number; of?: Name }
      | { kind: "value"; at: number; value: Expression }
    )[];
  };
  align?: {
    at: number;
    end?: number;
    to: "calendar" | "first observation";
    timeZone?: Expression;
    offset?: Expression;
  };
}

/** PIVOT turns values of columns into columns of aggregates. */
export interface Pivot {
  at: number;
  aggregates: SelectItem[];
  columns: PivotColumn[];
  groupBy: Expression[];
  alias?: Name;
}

/** `for expression in (value, …)` or `in (query)`. `at` of the values: that of the first one, or of the query. */
export interface PivotColumn {
  expression: Expression;
  values: SelectItem[] | Query;
  valuesAt: number;
  /** The end of a query. */
  valuesEnd?: number;
}

export interface LatestOn {
  at: number;
  /** Missing in the old form `latest by`. */
  timestamp?: Expression;
  partitionBy: Expression[];
}

/** The alias of a source. `x(a, b)` also names its first columns. */
export interface SourceNames {
  alias?: Name;
  columnNames?: Name[];
}

export type Source =
  /** A table, view or CTE. `timestamp(col)` after it selects the designated timestamp. */
  | ({ kind: "table"; at: number; name: Name; schema?: Name; timestamp?: Name } & SourceNames)
  | ({ kind: "subquery"; at: number; query: Query; timestamp?: Name } & SourceNames)
  /** `@t`, declared as a query or a table name. */
  | ({ kind: "variable"; at: number; name: string; timestamp?: Name } & SourceNames)
  /** `long_sequence(10)`, `read_parquet('f')`, `tables()`. */
  | ({ kind: "function"; at: number; call: FunctionCall; ordinality?: { at: number }; timestamp?: Name } & SourceNames)
  | ({ kind: "show"; at: number; statement: Statement } & SourceNames)
  | Join;

export interface Join {
  kind: "join";
  at: number;
  type: "inner" | "left" | "right" | "full" | "cross" | "asof" | "lt" | "splice" | "window" | "horizon";
  left: Source;
  right: Source;
  /** `on expr`; `on (a, b)` is a list (or a single column). */
  on?: Expression;
  /** USING: each pair of `on` columns becomes one column of the result. */
  merges?: boolean;
  /** TOLERANCE of ASOF and LT, as written: "10s", or a variable or parameter. */
  tolerance?: { text?: string; value?: Expression; at: number; wordAt: number };
  /** Of a WINDOW JOIN. */
  window?: JoinWindow;
  /** Of a HORIZON JOIN. */
  horizon?: Horizon;
  /** Position of the token after the joined source, where ON is missing; undefined at the end of the statement. */
  nextAt?: number;
}

/** `range between start and end`, relative to the time of a left row. */
export interface JoinWindow {
  start: FrameBound;
  end: FrameBound;
  /** The last row at or before the start belongs to the window, too. */
  includesPrevailing: boolean;
}

/** The offsets of a HORIZON JOIN, and the alias of their columns. */
export interface Horizon {
  offsets: { kind: "range"; from: HorizonOffset; to: HorizonOffset; step: HorizonOffset } | {
    kind: "list";
    items: HorizonOffset[];
  };
  alias: Name;
}

/** As written, with a minus: "-10s", "0". */
export interface HorizonOffset {
  text: string;
  at: number;
}

/** Common part of all statements. The file of each kind in `statements/` declares the rest. */
export interface Statement {
  readonly kind: string;
  readonly at: number;
}
