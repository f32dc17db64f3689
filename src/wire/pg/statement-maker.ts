/**
 * Makes statements of their texts. Cursor commands and COPY … TO STDOUT are carried out here, as they concern portals and messages of the
 * connection; all others are prepared by the session.
 */
import type { ExecuteOptions, Prepared, Session, StatementTexts } from "../../api.ts";
import { failedTransaction, movedError, notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import { type CopyOut, copyOut, CopyRows, mayBeCopyOut } from "./copy.ts";
import { announced, cursorCommand, type Declare, type Fetch, mayBeCursorCommand } from "./cursors.ts";
import { PG_SQLSTATE } from "./failure.ts";
import { type Bind, type Format, formatOf, NO_FORMATS } from "./messages.ts";
import type { Output } from "./output.ts";
import { announcedOid, arrayTagOf, decimalTagOf, isLoose, tagOfOid } from "./parameters.ts";
import {
  encodingOf,
  NO_ROWS,
  NO_VALUES,
  Portal,
  type Portals,
  type RowSink,
  type Statement,
  type Step,
} from "./portal.ts";
import type { Waits } from "./waits.ts";

const BINARY_FORMATS: Format[] = [1];

export class StatementMaker {
  constructor(
    private readonly session: Session,
    private readonly output: Output,
    private readonly portals: Portals,
    private readonly waits: Waits,
    private readonly canWrite: boolean,
  ) {}

  split(text: string): StatementTexts | Promise<StatementTexts> {
    if (!text.includes(";")) return [{ text, at: 0 }];
    const parts = this.session.split(text, this.waits.options);
    return parts instanceof Promise ? this.waits.during(parts) : parts;
  }

  /** Returns synchronously, except for long statements. */
  statement(text: string, at: number, oids: number[]): Statement | Promise<Statement> {
    const command = mayBeCursorCommand(text) ? cursorCommand(text) : undefined;
    if (command !== undefined) return this.cursorStatement(command, text, at, oids);
    const copy = mayBeCopyOut(text) ? copyOut(text) : undefined;
    if (copy !== undefined) return this.copyStatement(copy, text, at);
    const ready = (prepared: Prepared) => this.statementOfPrepared(prepared, text, at, oids);
    const prepared = this.prepare(text, oids);
    return prepared instanceof Promise ? this.waits.during(prepared).then(ready) : ready(prepared);
  }

  /**
   * Prepares the statement again for arguments whose own types it cannot know before: arrays with other dimensions than the OID's, and
   * numbers with more digits than the DECIMAL beside them.
   */
  withOwnTypes(statement: Statement, { args, argFormats }: Bind): Statement | Promise<Statement> {
    const { prepared: { parameters }, oids } = statement;
    if (args.length === 0 || statement.command !== undefined) return statement;
    const types = parameters.map((tag, index) => {
      const bytes = args[index] ?? null, format = formatOf(argFormats, index), oid = oids[index]!;
      const array = arrayTagOf(bytes, format, oid);
      // If a column or a cast determines the dimensions, the argument is wrong.
      if (array !== undefined && array !== tag && tag === tagOfOid(oid)) return array;
      return decimalTagOf(bytes, format, oid, tag) ?? tag;
    });
    if (types.every((type, index) => type === parameters[index])) return statement;
    const ready = (prepared: Prepared): Statement => ({ ...statement, prepared });
    const prepared = this.session.prepare(statement.text, types, this.waits.options);
    return prepared instanceof Promise ? this.waits.during(prepared).then(ready) : ready(prepared);
  }

  /** DECLARE, FETCH or MOVE. */
  private cursorStatement(
    command: Declare | Fetch,
    text: string,
    at: number,
    oids: number[],
  ): Statement | Promise<Statement> {
    if (command.kind !== "declare") {
      if (this.session.transaction === "failed") throw failedTransaction();
      const { name, nameAt } = command, cursor = this.portals.existing(name, nameAt);
      if (command.rowCount === undefined) throw notSupported("a cursor that moves otherwise than forward", 0);
      const columns = command.kind === "fetch" ? cursor.statement.prepared.columns : undefined;
      const prepared = announced(columns === undefined ? "session" : "query", {
        columns,
        parameters: [],
        parameterArrays: [],
      });
      return { prepared, text, at, oids: [], command: this.fetch.bind(this, command) };
    }
    const { name, query, queryAt, holds } = command;
    const ready = (of: Statement): Statement => {
      if (of.prepared.category !== "query") throw new SqlError("DECLARE of a cursor needs a query", 0);
      const prepared = announced("session", { ...of.prepared, columns: undefined });
      const declare = ({ values }: Portal): Step => {
        if (this.portals.get(name) !== undefined) {
          throw new SqlError(`cursor "${name}" already exists`, 0, PG_SQLSTATE.duplicateCursor);
        }
        this.portals.set(name, new Portal(of, values, encodingOf(of, NO_FORMATS), { holds }));
        return { kind: "complete", tag: "DECLARE CURSOR" };
      };
      return { prepared, text, at, oids: of.oids, command: declare };
    };
    const moved = (error: unknown): never => {
      throw movedError(error, (position) => position + queryAt);
    };
    try {
      const of = this.statement(query, at + queryAt, oids);
      return of instanceof Promise ? of.then(ready, moved) : ready(of);
    } catch (error) {
      return moved(error);
    }
  }

  /** FETCH and MOVE. Formats of a cursor's rows are those of its first FETCH. */
  private fetch(
    { kind, name, nameAt, rowCount = 0 }: Fetch,
    { encoding }: Portal,
    output: RowSink,
    options: ExecuteOptions,
  ): Step | Promise<Step> {
    let cursor = this.portals.existing(name, nameAt);
    const { statement, values, cursor: declared } = cursor;
    const wanted = kind === "move" ? cursor.encoding : encodingOf(statement, encoding.formats);
    if (wanted !== cursor.encoding) {
      if (cursor.hasBegun) throw notSupported("another format of rows of a cursor that has begun", 0);
      this.portals.set(name, cursor = new Portal(statement, values, wanted, declared));
    }
    const done = (step: Step): Step => {
      const count = "rowCount" in step ? step.rowCount ?? 0 : 0;
      return kind === "move"
        ? { kind: "complete", tag: `MOVE ${count}` }
        : { kind: "complete", tag: `FETCH ${count}`, rowCount: count };
    };
    if (rowCount === 0) return done({ kind: "empty" });
    const rows = kind === "move" ? NO_ROWS : output;
    // Places are those of the query, which is not in this statement.
    const failed = (error: unknown): never => {
      throw movedError(error, () => 0);
    };
    try {
      const step = cursor.step(rows, rowCount === Infinity ? 0 : rowCount, { ...options, encoding: wanted });
      return step instanceof Promise ? step.then(done, failed) : done(step);
    } catch (error) {
      return failed(error);
    }
  }

  /** COPY … TO STDOUT. */
  private copyStatement({ query, queryAt, sourceAt, options }: CopyOut, text: string, at: number) {
    const ready = (of: Statement): Statement => {
      const { columns } = of.prepared;
      if (columns === undefined) throw new SqlError("COPY TO STDOUT needs a query or a table", queryAt);
      if (of.prepared.parameters.length > 0) throw noValues();
      const copy = (_: Portal, given: ExecuteOptions): Step | Promise<Step> => {
        const rows = new CopyRows(this.output, columns, options);
        const done = (step: Step): Step => {
          rows.end();
          const count = "rowCount" in step ? step.rowCount ?? 0 : 0;
          return { kind: "complete", tag: `COPY ${count}`, rowCount: count };
        };
        const encoding = encodingOf(of, options.format === "binary" ? BINARY_FORMATS : NO_FORMATS);
        const step = new Portal(of, NO_VALUES, encoding).step(rows, 0, { ...given, encoding });
        return step instanceof Promise ? step.then(done) : done(step);
      };
      const prepared = announced("session", { ...of.prepared, columns: undefined });
      return { prepared, text, at, oids: [], command: (portal, _output, given) => copy(portal, given) };
    };
    const moved = (error: unknown): never => {
      throw movedError(error, (position) => position < queryAt ? 0 : position - queryAt + sourceAt);
    };
    try {
      const of = this.statement(query, at, []);
      return of instanceof Promise ? of.then(ready, moved) : ready(of);
    } catch (error) {
      return moved(error);
    }
  }

  private statementOfPrepared(prepared: Prepared, text: string, at: number, oids: number[]): Statement {
    if (!this.canWrite && (prepared.category === "dml" || prepared.category === "ddl")) {
      throw new SqlError("this connection is read-only", 0, SQLSTATE.readOnly);
    }
    const endsTransaction = prepared.category === "transaction" || prepared.category === "empty";
    if (this.session.transaction === "failed" && !endsTransaction) throw failedTransaction();
    return {
      prepared,
      text,
      at,
      oids: prepared.parameters.map((tag, i) => announcedOid(oids[i], tag, prepared.parameterArrays[i])),
    };
  }

  private prepare(text: string, oids: number[]): Prepared | Promise<Prepared> {
    if (oids.length === 0) return this.session.prepare(text, [], this.waits.options);
    const again = (error: unknown): Prepared | Promise<Prepared> => {
      // An array may have other dimensions, and a number another type, if the statement needs that.
      const isMisfit = error instanceof SqlError && error.sqlState === SQLSTATE.datatypeMismatch;
      if (!isMisfit || !oids.some(isLoose)) throw error;
      return this.session.prepare(
        text,
        oids.map((oid) => isLoose(oid) ? undefined : tagOfOid(oid)),
        this.waits.options,
      );
    };
    try {
      const prepared = this.session.prepare(text, oids.map(tagOfOid), this.waits.options);
      return prepared instanceof Promise ? prepared.catch(again) : prepared;
    } catch (error) {
      return again(error);
    }
  }
}

/** For a statement with parameters that was sent without values. */
export function noValues(): SqlError {
  return new SqlError("there is no value for parameter $1", 0, PG_SQLSTATE.undefinedParameter);
}
