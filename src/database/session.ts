/** The session of a client: statements, prepared once and executed often, and its transaction. */
import type { Answer, Client, ExecuteOptions, Identity, Prepared, Session, SpooledRows } from "../api.ts";
import { failedTransaction, movedError, SqlError, SQLSTATE, type SubqueryList, TableClosedError } from "../errors.ts";
import { finerSamples, type SampleRange, type Savepoints, Script, splitScript } from "../sql/mod.ts";
import type { Catalogue } from "../storage/contract.ts";
import { visibleTables } from "./access/visible.ts";
import { type Core, SERVER } from "./core.ts";
import { pivotList } from "./pivot-list.ts";
import type { WaitOptions } from "./planner.ts";
import { PreparedStatement } from "./prepared.ts";
import { readSpooled, type SpooledOrder } from "./spooled.ts";
import { QUICK_TEXT_LENGTH_MAX, type Statement, type StatementCache } from "./statements.ts";
import { noTransaction, Transaction } from "./transaction.ts";

/** Longer queries are not narrowed: parsing them would block this thread. */
const NARROWED_TEXT_LENGTH_MAX = 4_096;

function isOfList(error: unknown): error is SqlError & { list: SubqueryList } {
  return error instanceof SqlError && error.list !== undefined;
}

export class DatabaseSession implements Session {
  /** The open transaction, by BEGIN or for a request of several statements. */
  current: Transaction | undefined;

  constructor(private readonly core: Core, public identity: Identity, readonly client?: Client) {
    core.activity.connect(this);
  }

  assume(account: string | undefined): void {
    this.identity = { ...this.identity, assumed: account };
  }

  async end(): Promise<void> {
    this.core.activity.disconnect(this.client);
    await this.close();
  }

  get transaction(): Session["transaction"] {
    if (!this.current?.isBlock) return "idle";
    return this.current.hasFailed ? "failed" : "open";
  }

  get statements(): StatementCache {
    return this.current?.statements ?? this.core.statements;
  }

  get catalogue(): Catalogue {
    return this.current?.catalogue ?? this.core.catalogue;
  }

  prepare(
    text: string,
    parameterTypes: (string | undefined)[] = [],
    options: WaitOptions = {},
  ): Prepared | Promise<Prepared> {
    if (this.transaction === "failed") return this.prepareEnd(text, parameterTypes);
    const known = this.statements.known(text, parameterTypes);
    if (known !== undefined) return this.prepared(known, 0);
    const start = performance.now();
    const ready = (statement: Statement) => this.prepared(statement, Math.round((performance.now() - start) * 1e6));
    // Binding may need facts about a table that is not open yet.
    const opened = async (error: unknown): Promise<Prepared> => {
      if (isOfList(error)) return await this.prepareListed(error, text, parameterTypes, options);
      if (!(error instanceof TableClosedError)) throw await this.visible(error, text, parameterTypes, options);
      await this.core.writer.open(error.tableId);
      return await this.prepare(text, parameterTypes, options);
    };
    try {
      const statement = this.statements.get(text, parameterTypes, this, options);
      return statement instanceof Promise ? statement.then(ready).catch(opened) : ready(statement);
    } catch (error) {
      if (!(error instanceof TableClosedError) && !isOfList(error) && !this.isNarrowed) throw error;
      return opened(error);
    }
  }

  /** Compiles a statement with the values of a sub-query in place of it, as the columns depend on them. */
  private async prepareListed(
    { position, list: { end, preludes } }: SqlError & { list: SubqueryList },
    text: string,
    parameterTypes: (string | undefined)[],
    options: WaitOptions,
  ): Promise<Prepared> {
    const before = preludes.map(({ from, to }) => text.slice(from, to));
    const list = await pivotList(this, { before, text: text.slice(position, end), at: position }, options);
    try {
      return await this.prepare(text.slice(0, position) + list + text.slice(end), parameterTypes, options);
    } catch (error) {
      throw movedError(error, (at) => at < position ? at : Math.max(position, at - list.length + end - position));
    }
  }

  private prepared(statement: Statement, compileNs: number): Prepared {
    // Authorized already here, because the result is described to the client before the execution.
    if (this.identity !== SERVER) {
      this.core.access?.authorize(this.identity, this.client, statement.requires, this.catalogue);
    }
    return new PreparedStatement(this, this.core, statement, compileNs);
  }

  /** True if there are tables or columns that the user may not know of. */
  private get isNarrowed(): boolean {
    const { access } = this.core;
    return access !== undefined && this.identity !== SERVER && !access.rightsOf(this.identity).isAdmin;
  }

  /** Returns the error as if only the tables and columns that the user may know of existed. */
  private async visible(
    error: unknown,
    text: string,
    parameterTypes: (string | undefined)[],
    options: WaitOptions,
  ): Promise<unknown> {
    if (!(error instanceof SqlError) || error.sqlState === SQLSTATE.insufficientPrivilege || !this.isNarrowed) {
      return error;
    }
    const tables = visibleTables(this.catalogue, this.core.access!.rightsOf(this.identity));
    try {
      await this.core.statementsOf(tables, () => 0).get(text, parameterTypes, this, options);
    } catch (other) {
      return other;
    }
    return error;
  }

  /** For a failed transaction, which accepts only statements that end it. Errors in other statements do not matter. */
  private prepareEnd(text: string, parameterTypes: (string | undefined)[]): Prepared {
    try {
      const statement = this.core.statements.get(text, parameterTypes, this);
      if (!(statement instanceof Promise)) return new PreparedStatement(this, this.core, statement, 0);
      statement.catch(() => {});
    } catch {
      // The statement is refused anyway.
    }
    throw failedTransaction();
  }

  split(
    text: string,
    options: WaitOptions = {},
  ): Script | Promise<Script> {
    if (text.length <= QUICK_TEXT_LENGTH_MAX) return splitScript(text);
    return this.core.planner.bounds(text, options).then((bounds) => new Script(text, bounds));
  }

  readSpooled(
    rows: SpooledRows,
    order: SpooledOrder | undefined,
    options: ExecuteOptions,
  ): Promise<Extract<Answer, { kind: "rows" }>> {
    return readSpooled(this.core, this, rows, order, options);
  }

  finerSamples(text: string, range: SampleRange): { text: string; bucket: string } | undefined {
    return text.length <= NARROWED_TEXT_LENGTH_MAX ? finerSamples(text, range) : undefined;
  }

  beginRequest(): void {
    this.current ??= new Transaction(this.core, false);
  }

  async endRequest(): Promise<void> {
    if (this.current?.isBlock === false) await this.commit();
  }

  begin(): void {
    if (this.current === undefined) this.current = new Transaction(this.core, true);
    else this.current.isBlock = true;
  }

  /** Returns the command tag. A failed transaction is rolled back. */
  async commit(): Promise<string> {
    const { current } = this;
    this.current = undefined;
    if (current?.hasFailed) {
      await current.rollback();
      return "ROLLBACK";
    }
    await current?.commit();
    return "COMMIT";
  }

  async close(): Promise<void> {
    const { current } = this;
    this.current = undefined;
    await current?.rollback();
  }

  async fail(): Promise<void> {
    if (this.current?.isBlock === false) await this.close();
    else if (this.current !== undefined) this.current.hasFailed = true;
  }

  readonly savepoints: Savepoints = {
    add: (name) => this.block("SAVEPOINT").savepoint(name),
    release: (name, at) => this.block("RELEASE").release(name, at),
    rollbackTo: async (name, at) => await this.block("ROLLBACK TO").rollbackTo(name, at),
  };

  private block(statement: string): Transaction {
    if (!this.current?.isBlock) throw noTransaction(statement);
    return this.current;
  }
}
