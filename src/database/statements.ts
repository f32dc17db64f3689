/** Compiled statements by their text. Parsing, binding and planning happen once for each text and schema. */
import type { PostedPlan } from "../engine/mod.ts";
import { type ClientFacts, LongStatement } from "../sql/mod.ts";
import type { Value } from "../types/mod.ts";
import type { Asker, WaitOptions } from "./planner.ts";
import type { Planned } from "./planning.ts";

export interface Statement extends Planned<PostedPlan> {
  text: string;
  /** The types that the client specified. */
  parameterTypes: (string | undefined)[];
  /** The version of all schemas when it was bound. */
  schemaVersion: number;
}

export type { Asker } from "./planner.ts";

export function factsOf(client: Asker["client"]): ClientFacts | undefined {
  return client && { settings: client.settings, pid: client.pid };
}

/** A text with the types of its parameters, and its session. */
export interface StatementSource extends Asker {
  text: string;
  parameterTypes: (string | undefined)[];
  /** Values of the parameters, if the statement is bound for one run. */
  values?: readonly Value[];
}

export interface Planning {
  /** Compiles on this thread. @throws {LongStatement} if it would block the thread too long. */
  quick(source: StatementSource): Planned;
  /** Compiles on the planner's thread. */
  long(source: StatementSource, options: WaitOptions): Promise<Planned<PostedPlan>>;
  /** The version of all schemas. */
  schemaVersion(): number;
}

/** Longer texts (bulk inserts) are seldom repeated, so they are not cached. */
const CACHED_TEXT_LENGTH_MAX = 4_096;
/** Maximum sum of the cached texts' lengths. A plan takes some 50 bytes for each character of its statement. */
const CACHED_LENGTH_SUM_MAX = 1 << 20;
/** Longer texts are not even tokenized on this thread. */
export const QUICK_TEXT_LENGTH_MAX = 32_768;

export class StatementCache {
  private readonly byKey = new Map<string, Statement>();
  private lengthSum = 0;

  constructor(private readonly planning: Planning, private readonly sizeMax: number) {}

  /** Returns synchronously, except for long statements that are not cached. */
  get(
    text: string,
    parameterTypes: (string | undefined)[],
    asker: Asker,
    options: WaitOptions = {},
  ): Statement | Promise<Statement> {
    const cached = this.known(text, parameterTypes);
    if (cached !== undefined) return cached;
    const key = keyOf(text, parameterTypes), schemaVersion = this.planning.schemaVersion();
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

  /** The statement, if it is cached. */
  known(text: string, parameterTypes: (string | undefined)[]): Statement | undefined {
    const cached = this.byKey.get(keyOf(text, parameterTypes));
    return cached?.schemaVersion === this.planning.schemaVersion() ? cached : undefined;
  }

  /** Returns the statement, bound again if a schema has changed. */
  refreshed(statement: Statement, asker: Asker, options: WaitOptions): Statement | Promise<Statement> {
    return statement.schemaVersion === this.planning.schemaVersion() && !statement.boundAnew
      ? statement
      : this.get(statement.text, statement.parameterTypes, asker, options);
  }

  /** Returns the statement for one run with these parameter values. */
  withValues(
    statement: Statement,
    values: readonly Value[],
    asker: Asker,
    options: WaitOptions,
  ): Statement | Promise<Statement> {
    if (!statement.boundByValues) return statement;
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
    this.drop(key);
    if (this.sizeMax > 0 && statement.text.length <= CACHED_TEXT_LENGTH_MAX && !statement.boundAnew) {
      this.byKey.set(key, statement);
      this.lengthSum += key.length;
      while (this.byKey.size > this.sizeMax || this.lengthSum > CACHED_LENGTH_SUM_MAX) {
        this.drop(this.byKey.keys().next().value!);
      }
    }
    return statement;
  }

  private drop(key: string): void {
    if (this.byKey.delete(key)) this.lengthSum -= key.length;
  }
}

function keyOf(text: string, parameterTypes: (string | undefined)[]): string {
  return parameterTypes.length === 0 ? text : `${parameterTypes.join()}\n${text}`;
}
