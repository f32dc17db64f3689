/** Statements as they are ready to run, by their text: parsing, binding and planning happen once for each text and schema. */
import { asClientFault } from "../errors.ts";
import type { Identity, Prepared, ResultColumn } from "../door.ts";
import { bind, inputsOf, optimizeStatement, parse } from "../sql/mod.ts";
import type { BoundStatement, Plan } from "../sql/plan.ts";

export interface Statement {
  text: string;
  /** As the client gave them. */
  parameterTypes: (string | undefined)[];
  bound: BoundStatement;
  columns: ResultColumn[] | undefined;
  parameters: string[];
  category: Prepared["category"];
  hasMetadata: boolean;
  /** Calls functions that the door answers. */
  asksServer: boolean;
  /** Holds for the moment at which it was bound. */
  boundByClock: boolean;
  /** Of all tables, when it was bound. */
  schemaVersion: number;
}

export interface StatementBinder {
  (
    text: string,
    parameterTypes: (string | undefined)[],
    identity: Identity,
  ): { statement: BoundStatement; columns: ResultColumn[]; parameterTypes: string[] };
}

const CATEGORY: Record<BoundStatement["kind"], Prepared["category"]> = {
  query: "query",
  explain: "query",
  createTable: "ddl",
  dropTable: "ddl",
  truncate: "ddl",
  rename: "ddl",
  addColumns: "ddl",
  dropColumns: "ddl",
  renameColumn: "ddl",
  insert: "dml",
  update: "dml",
  delete: "dml",
  set: "ddl",
  transaction: "transaction",
  checkpoint: "ddl",
  backup: "ddl",
  empty: "empty",
};

/** Longer texts (bulk inserts) are seldom sent twice. */
const CACHED_TEXT_LENGTH_MAX = 4_096;

export class StatementCache {
  private readonly byKey = new Map<string, Statement>();

  constructor(
    private readonly bindText: StatementBinder,
    private readonly schemaVersion: () => number,
    private readonly sizeMax: number,
  ) {}

  get(text: string, parameterTypes: (string | undefined)[], identity: Identity): Statement {
    const key = parameterTypes.length === 0 ? text : `${parameterTypes.join()}\n${text}`;
    const cached = this.byKey.get(key);
    if (cached && cached.schemaVersion === this.schemaVersion()) return cached;
    const statement = this.make(text, parameterTypes, identity);
    this.byKey.delete(key);
    if (this.sizeMax > 0 && text.length <= CACHED_TEXT_LENGTH_MAX && !statement.boundByClock) {
      if (this.byKey.size >= this.sizeMax) this.byKey.delete(this.byKey.keys().next().value!);
      this.byKey.set(key, statement);
    }
    return statement;
  }

  /** The statement itself, or bound anew where a schema has changed since. */
  refreshed(statement: Statement, identity: Identity): Statement {
    return statement.schemaVersion === this.schemaVersion() && !statement.boundByClock
      ? statement
      : this.get(statement.text, statement.parameterTypes, identity);
  }

  get size(): number {
    return this.byKey.size;
  }

  private make(text: string, parameterTypes: (string | undefined)[], identity: Identity): Statement {
    const schemaVersion = this.schemaVersion();
    const { statement, columns, parameterTypes: parameters } = this.bindText(text, parameterTypes, identity);
    // With parameters, the rules run once their values are known.
    const bound = parameters.length > 0 ? statement : optimizeStatement(statement);
    const category = CATEGORY[bound.kind];
    return {
      text,
      parameterTypes,
      bound,
      columns: bound.kind === "explain"
        ? [{ name: "QUERY PLAN", type: "STRING" }]
        : category === "query"
        ? columns
        : undefined,
      parameters,
      category,
      hasMetadata: plansOf(bound).some(hasMetadata),
      asksServer: /reload_config/i.test(text),
      boundByClock: isBoundByClock(text),
      schemaVersion,
    };
  }
}

/** Relative days, as in an interval. */
const RELATIVE_DAY = /\$(?:now|today|tomorrow|yesterday)/i;
/** Their ends are worked out when a statement is bound. */
const BOUND_RANGE = /\b(?:generate_series|sample\s+by\s+\S{1,20}\s+(?:from|to))\b/i;
const CLOCK = /\b(?:now|now_ns|today|tomorrow|yesterday|sysdate|systimestamp|systimestamp_ns|current_\w+)\b/i;

/** Such a text is bound each time. One test at a time: each is over after one pass, also over a long text. */
function isBoundByClock(text: string): boolean {
  return RELATIVE_DAY.test(text) || BOUND_RANGE.test(text) && CLOCK.test(text);
}

function plansOf(bound: BoundStatement): Plan[] {
  if (bound.kind === "explain") return plansOf(bound.statement);
  if ("plan" in bound) return [bound.plan];
  return "query" in bound && bound.query ? [bound.query] : [];
}

function hasMetadata(plan: Plan): boolean {
  return plan.node === "metadata" || inputsOf(plan).some(hasMetadata);
}

/** One text as a bound statement. */
export function binder(
  context: (parameterTypes: (string | undefined)[], identity: Identity) => Parameters<typeof bind>[1],
): StatementBinder {
  return (text, parameterTypes, identity) => {
    try {
      return bind(parse(text), { ...context(parameterTypes, identity), text });
    } catch (error) {
      throw asClientFault(error);
    }
  };
}
