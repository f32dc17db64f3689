/** Statements as they are ready to run, by their text: parsing, binding and planning happen once for each text and schema. */
import { isPacked, type PostedPlan } from "../engine/mod.ts";
import { type ClientFacts, LongStatement } from "../sql/mod.ts";
import type { Value } from "../types/mod.ts";
import type { Asker, WaitOptions } from "./planner.ts";
import { type Planned, plansOf } from "./planning.ts";

export interface Statement extends Planned<PostedPlan> {
  text: string;
  /** As the client gave them. */
  parameterTypes: (string | undefined)[];
  /** Of all tables, when it was bound. */
  schemaVersion: number;
}

export type { Asker } from "./planner.ts";

export function factsOf(client: Asker["client"]): ClientFacts | undefined {
  return client && { settings: client.settings, pid: client.pid };
}

/** A text with the types of its parameters, and who asks. */
export interface StatementSource extends Asker {
  text: string;
  parameterTypes: (string | undefined)[];
  /** Of the parameters, where the statement is bound for one run. */
  values?: readonly Value[];
}

export interface Planning {
  /** On this thread. @throws {LongStatement} where that would hold up others. */
  quick(source: StatementSource): Planned;
  /** On another one. */
  long(source: StatementSource, options: WaitOptions): Promise<Planned<PostedPlan>>;
  /** Of all tables. */
  schemaVersion(): number;
}

/** Longer texts (bulk inserts) are seldom sent twice. */
const CACHED_TEXT_LENGTH_MAX = 4_096;
/** Of longer texts this thread does not even look at the words. */
export const QUICK_TEXT_LENGTH_MAX = 32_768;

export class StatementCache {
  private readonly byKey = new Map<string, Statement>();

  constructor(private readonly planning: Planning, private readonly sizeMax: number) {}

  /** At once, but for long statements that are not known. */
  get(
    text: string,
    parameterTypes: (string | undefined)[],
    asker: Asker,
    options: WaitOptions = {},
  ): Statement | Promise<Statement> {
    const key = parameterTypes.length === 0 ? text : `${parameterTypes.join()}\n${text}`;
    const schemaVersion = this.planning.schemaVersion();
    const cached = this.byKey.get(key);
    if (cached && cached.schemaVersion === schemaVersion) return cached;
    const source = { text, parameterTypes, identity: asker.identity, client: asker.client };
    const keep = (planned: Planned<PostedPlan>) => this.keep(key, { ...planned, text, parameterTypes, schemaVersion });
    if (text.length <= QUICK_TEXT_LENGTH_MAX) {
      try {
        return keep(this.planning.quick(source));
      } catch (error) {
        if (!(error instanceof LongStatement)) throw error;
      }
    }
    return this.planning.long(source, options).then(keep);
  }

  /** The statement itself, or bound anew where a schema has changed since. */
  refreshed(statement: Statement, asker: Asker, options: WaitOptions): Statement | Promise<Statement> {
    return statement.schemaVersion === this.planning.schemaVersion() && !statement.boundAnew
      ? statement
      : this.get(statement.text, statement.parameterTypes, asker, options);
  }

  /** The statement for one run with these values of its parameters. */
  withValues(
    statement: Statement,
    values: readonly Value[],
    asker: Asker,
    options: WaitOptions,
  ): Statement | Promise<Statement> {
    // Of a packed plan the planner does the same when it runs.
    if (!statement.boundByValues || plansOf(statement.bound).some(isPacked)) return statement;
    const { identity, client } = asker;
    const source = { text: statement.text, parameterTypes: statement.parameters, identity, client, values };
    const ready = (planned: Planned<PostedPlan>): Statement => ({ ...statement, ...planned });
    try {
      return ready(this.planning.quick(source));
    } catch (error) {
      if (!(error instanceof LongStatement)) throw error;
      return this.planning.long(source, options).then(ready);
    }
  }

  get size(): number {
    return this.byKey.size;
  }

  private keep(key: string, statement: Statement): Statement {
    this.byKey.delete(key);
    if (this.sizeMax > 0 && statement.text.length <= CACHED_TEXT_LENGTH_MAX && !statement.boundAnew) {
      if (this.byKey.size >= this.sizeMax) this.byKey.delete(this.byKey.keys().next().value!);
      this.byKey.set(key, statement);
    }
    return statement;
  }
}
