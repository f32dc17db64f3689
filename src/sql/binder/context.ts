/** The context of binding one statement and what it collects: the catalogue, types of parameters, names in scope. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { didYouMean } from "../../nearest.ts";
import type { Catalogue, TableSnapshot } from "../../storage/contract.ts";
import { ANY_NUMBER, type Value } from "../../types/mod.ts";
import { decimalOf } from "../../types/wide.ts";
import type { CommonTable, Expression, Name, Query, TextRange } from "../ast.ts";
import type { ClientFacts, SessionValues } from "../client-settings.ts";
import { type Effort, FULL_EFFORT } from "../effort.ts";
import { functionHint } from "../other-dialects.ts";
import type { Expr, Views, WorkingNode } from "../plan.ts";
import { Requirements } from "./requirements.ts";
import { isPlain } from "./text.ts";

export interface BindContext {
  catalogue: Catalogue;
  views?: Views;
  /** Tables that only the server changes, in lower case. Absent for its own statements. */
  ownTables?: ReadonlySet<string>;
  /** Type tags that the client gave for $1, $2 …; undefined to infer. */
  parameterTypes: (string | undefined)[];
  /** Values of the parameters. Given if a statement is bound again for one run, because its shape depends on them. */
  parameterValues?: readonly Value[];
  /** Absolute path of the directory that read_parquet may read. */
  importRoot: string;
  nowMicros: bigint;
  user: string;
  /** Returns the columns of a Parquet file. Passed in, because this layer reads no files. */
  parquetSchema: (path: string) => FileColumns;
  effort?: Effort;
  /** Called often. @throws once the statement was cancelled. */
  poll?: () => void;
  /** Settings made by SET, and the number of the connection. */
  client?: ClientFacts;
}

/** The columns of supported types, and the others with their types as the file names them. */
export interface FileColumns {
  columns: { name: string; type: string }[];
  leftOut: { name: string; type: string }[];
}

/** Common table expressions and DECLARE variables in scope. Inner ones hide outer ones. */
export interface Names {
  readonly parent?: Names;
  readonly queries: ReadonlyMap<string, CommonQuery>;
  readonly variables: Map<string, Variable>;
  /** The text of DECLARE and WITH that the names are from. */
  readonly prelude?: TextRange;
}

/** `at`: position of `:=`. */
export interface Variable {
  value: Expression;
  names: Names;
  at: number;
}

/** A query of WITH with its names in scope; inside a recursion, the rows of the previous round. */
export type CommonQuery = { table: CommonTable; names: Names } | { working: WorkingNode };

export const NO_NAMES: Names = { queries: new Map(), variables: new Map() };

export function findQuery(names: Names, name: string): CommonQuery | undefined {
  const key = name.toLowerCase();
  for (let at: Names | undefined = names; at !== undefined; at = at.parent) {
    const found = at.queries.get(key);
    if (found !== undefined) return found;
  }
  return undefined;
}

export function findVariable(names: Names, name: string): Variable | undefined {
  const key = name.toLowerCase();
  for (let at: Names | undefined = names; at !== undefined; at = at.parent) {
    const found = at.variables.get(key);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * The constant or column that a variable stands for, for clauses that tell these apart: positions, and columns of LATEST ON. Any other
 * expression is returned as it is.
 */
export function plainOf(e: Expression, names: Names): Expression {
  let plain = e, scope = names;
  while (plain.kind === "variable") {
    const found = findVariable(scope, plain.name);
    if (found === undefined) return e;
    plain = found.value;
    scope = found.names;
  }
  return plain.kind === "column" || isPlain(plain) ? plain : e;
}

/** The names in scope inside a query: those of its DECLARE and WITH, and the outer ones. */
export function innerNames(query: Pick<Query, "declares" | "with" | "prelude">, outer: Names): Names {
  let names = outer;
  for (const declared of query.declares) {
    // A later variable may use an earlier one, also one of the same name.
    names = {
      parent: names,
      queries: new Map(),
      variables: new Map([[declared.name.toLowerCase(), { value: declared.value, names, at: declared.assignAt }]]),
    };
  }
  const seen = new Set<string>();
  for (const table of query.with) {
    const { name } = table, key = name.text.toLowerCase();
    if (seen.has(key)) throw new SqlError(`WITH has ${name.text} twice`, name.at, SQLSTATE.duplicateTable);
    seen.add(key);
    const prelude = query.prelude && { from: query.prelude.from, to: table.end };
    names = { parent: names, queries: new Map([[key, { table, names }]]), variables: new Map(), prelude };
  }
  return query.prelude === undefined ? names : { ...names, prelude: query.prelude };
}

/** Where the DECLARE and WITH are from which names are in scope, as far as these go, the outermost first. */
export function preludesOf(names: Names): TextRange[] {
  const preludes: TextRange[] = [];
  for (let at: Names | undefined = names; at !== undefined; at = at.parent) {
    const { prelude } = at;
    // Each table of a WITH has the tables before it in scope.
    if (prelude !== undefined && preludes[0]?.from !== prelude.from) preludes.unshift(prelude);
  }
  return preludes;
}

/** The type of a parameter that is still undetermined. Finished plans never have it. */
export const UNTYPED = "UNTYPED";

/** The state of binding one statement. */
export class Binding {
  readonly parameterTypes: (string | undefined)[];
  /** Indices of the parameters that may be any number, see ANY_NUMBER. */
  private readonly anyNumbers = new Set<number>();
  /**
   * For each parameter: the element type if PostgreSQL declares it as an array, as in `$1::oid[]`. Arrays are texts
   * here.
   */
  readonly parameterArrays: (string | undefined)[] = [];
  readonly requires = new Requirements((permission, { name }, at) => {
    const { ownTables, catalogue } = this.context;
    // Its own statements change the tables of the server.
    if (permission === "SELECT" || ownTables === undefined) return;
    if (ownTables.has(name.toLowerCase())) {
      throw new SqlError(`${name} is a table of the server: only it changes the table`, at, SQLSTATE.wrongObjectType);
    }
    if (permission.endsWith("MATERIALIZED VIEW") || catalogue.table(name)?.schema.materialized === undefined) return;
    throw new SqlError(
      `${name} is a materialized view, which only the server changes`,
      permission === "UPDATE" ? this.statementAt : at,
      SQLSTATE.wrongObjectType,
    );
  });
  /** Notices to the client, besides the result. */
  readonly notices = new Set<string>();
  /** For columns of files with unsupported types, by lower-case name: why they cannot be read. */
  readonly unreadable = new Map<string, string>();
  /** The shape of the statement depends on values of parameters that are still unknown; stand-ins are used for them. */
  boundByValues = false;
  /** The bound statement depends on the clock, on files or on settings at the time of binding. */
  boundAnew = false;
  /** The time that the plan contains, see `now`. */
  timeMicros?: bigint;
  /** Views whose text is being bound, by lower-case names. */
  private readonly openViews = new Set<string>();
  /** The names in scope where each of these is read, the innermost first. */
  private readers: readonly Names[] = [];
  /** Positions of bound expressions in the text, for errors found after the expression was bound. */
  private readonly positions = new WeakMap<Expr, number>();
  /** Nesting depth of views, sub-queries and expressions. */
  private depth = 0;
  private bound = 0;
  private recursions = 0;
  private readonly effort: Effort;

  /** `statementAt`: offset of the statement's first token. */
  constructor(readonly context: BindContext, readonly statementAt: number) {
    this.parameterTypes = context.parameterTypes.map((type, index) => {
      if (type !== ANY_NUMBER) return type;
      this.anyNumbers.add(index);
      return undefined;
    });
    this.effort = context.effort ?? FULL_EFFORT;
  }

  /** Counts the expressions that the statement expands to. @throws if there are too many. */
  spend(expressions: number, at: number): void {
    this.context.poll?.();
    this.bound += expressions;
    const { expressions: max, beyond } = this.effort;
    if (this.bound > max) throw beyond(`more than ${max} expressions`, at, max);
  }

  /** Returns a new id for a recursion. */
  nextRecursion(): number {
    return this.recursions++;
  }

  at<T extends Expr>(expr: T, at: number): T {
    if (!this.positions.has(expr)) this.positions.set(expr, at);
    return expr;
  }

  positionOf(expr: Expr): number {
    const known = this.positions.get(expr);
    if (known !== undefined) return known;
    return "at" in expr ? expr.at : 0;
  }

  /** Settings of the session. A statement that uses them must be bound again for each run. */
  sessionValues(): SessionValues {
    this.boundAnew = true;
    return this.context.client?.settings ?? new Map();
  }

  connectionNumber(): number {
    this.boundAnew = true;
    return this.context.client?.pid ?? 0;
  }

  /** The time of binding, in microseconds since 1970. A statement that uses it must be bound again for each run. */
  now(): bigint {
    this.boundAnew = true;
    return this.timeMicros = this.context.nowMicros;
  }

  /** Returns the type of parameter `index`. An undetermined parameter gets `type`. `isColumn`: a column of that type takes it. */
  settleParameter(index: number, type: string, isColumn = false): string {
    if (this.anyNumbers.has(index) && !isColumn && decimalOf(type) === undefined) {
      return this.parameterTypes[index] ??= "DOUBLE";
    }
    const settled = type === "NULL" ? "STRING" : type === "SYMBOL" || type === "SYMBOL_TEXT" ? "STRING" : type;
    return this.parameterTypes[index] ??= settled;
  }

  table(name: Name): TableSnapshot {
    const snapshot = this.context.catalogue.table(name.text);
    if (snapshot === undefined) throw this.noTable(name);
    return snapshot;
  }

  /** The error for the name of a table that does not exist, or is a view, which only queries can read. */
  noTable({ text, at }: Pick<Name, "text" | "at">): SqlError {
    if (this.context.views?.view(text) !== undefined) {
      return new SqlError(`${text} is a view: this needs a table`, at, SQLSTATE.wrongObjectType);
    }
    return unknownTable(text, at, tableNames(this.context.catalogue));
  }

  /** The table of a materialized view. @throws at its name if there is none. */
  materialized({ text, at }: Name): TableSnapshot {
    const table = this.context.catalogue.table(text);
    if (table?.schema.materialized !== undefined) return table;
    const isOther = table !== undefined || this.context.views?.view(text) !== undefined;
    throw isOther
      ? new SqlError(`${text} is no materialized view`, at, SQLSTATE.wrongObjectType)
      : new SqlError(`there is no materialized view ${text}`, at, SQLSTATE.undefinedTable);
  }

  noView({ text, at }: Name): SqlError {
    if (this.context.catalogue.table(text) === undefined) {
      return new SqlError(`there is no view ${text}`, at, SQLSTATE.undefinedTable);
    }
    const { materialized } = this.context.catalogue.table(text)!.schema;
    const what = materialized === undefined ? "table" : "materialized view";
    return new SqlError(`${text} is a ${what}, not a view`, at, SQLSTATE.wrongObjectType);
  }

  /**
   * Runs `work`, which binds the text of a view that is read where `names` are in scope. It gets the variables of what reads the view: of
   * the statement and of views between them, of which inner ones hide outer ones. @throws at `at` if the view reads itself.
   */
  insideView<T>(
    name: string,
    at: number,
    names: Names,
    work: (given: (variable: string) => Variable | undefined) => T,
  ): T {
    const key = name.toLowerCase();
    if (this.openViews.has(key)) {
      throw new SqlError(`view ${name} reads itself`, at, SQLSTATE.invalidRecursion);
    }
    const outer = this.readers, readers = [names, ...outer];
    this.openViews.add(key);
    this.readers = readers;
    try {
      return this.nested(at, () =>
        work((variable) => {
          for (const reader of readers) {
            const found = findVariable(reader, variable);
            if (found !== undefined) return found;
          }
          return undefined;
        }));
    } finally {
      this.openViews.delete(key);
      this.readers = outer;
    }
  }

  /** The text that is bound is not that of the statement. */
  get isInsideView(): boolean {
    return this.openViews.size > 0;
  }

  /**
   * Limits the recursion, so that deep nesting is reported as an error of the statement instead of overflowing the
   * stack.
   */
  nested<T>(at: number, work: () => T): T {
    if (++this.depth > 400) throw new SqlError("the statement is nested too deeply", at, SQLSTATE.programLimitExceeded);
    try {
      return work();
    } finally {
      this.depth--;
    }
  }
}

export const tableNames = (catalogue: Pick<Catalogue, "tables">): string[] =>
  catalogue.tables().map(({ schema }) => schema.name);

/** `known`: the existing names. */
export function unknownTable(name: string, at: number, known: Iterable<string>): SqlError {
  return new SqlError(`there is no table ${name}${didYouMean(name, known)}`, at, SQLSTATE.undefinedTable);
}

/** `isQuoted`: the name was in double quotes, which mark texts in other dialects. */
export function unknownColumn(
  name: string,
  at: number,
  known: readonly { name: string }[],
  isQuoted = false,
): SqlError {
  const similar = didYouMean(name, known.map((column) => column.name));
  const hint = similar !== "" ? similar : isQuoted ? `; a text is written '${name}'` : functionHint(name) ?? "";
  return new UnknownColumn(name, `there is no column ${name}${hint}`, at);
}

export class UnknownColumn extends SqlError {
  /** `column` may be qualified by the table's name. */
  constructor(readonly column: string, message: string, at: number) {
    super(message, at, SQLSTATE.undefinedColumn);
  }
}

export function unknownFunction(name: string, at: number, known: Iterable<string>, what = ""): SqlError {
  const hint = functionHint(name) ?? didYouMean(name, known);
  return new SqlError(`there is no function ${name}${what}${hint}`, at, SQLSTATE.undefinedFunction);
}

export function unknownVariable(name: string, at: number, names: Names): SqlError {
  const known = inForce(names).flatMap(({ variables }) => [...variables.keys()].map((key) => `@${key}`));
  const hint = didYouMean(`@${name}`, known);
  return new SqlError(`the variable @${name} is not declared${hint}`, at, SQLSTATE.undefinedColumn);
}

/** `names`, followed by all enclosing scopes. */
export function inForce(names: Names): Names[] {
  const all: Names[] = [];
  for (let at: Names | undefined = names; at !== undefined; at = at.parent) all.push(at);
  return all;
}

export function ambiguousColumn(name: string, at: number): SqlError {
  return new SqlError(
    `column ${name} is ambiguous, because several tables have it: qualify it with a table name`,
    at,
    SQLSTATE.ambiguousColumn,
  );
}

export function typeMismatch(message: string, at: number): SqlError {
  return new SqlError(message, at, SQLSTATE.datatypeMismatch);
}
