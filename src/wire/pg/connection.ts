/** Serves one logged-in client: reads messages and answers them in order. */
import { clearImmediate, setImmediate } from "node:timers";
import { type ConnectionState, type Prepared, type Session, shownUser, type StatementTexts } from "../../api.ts";
import { ProviderUnavailable } from "../../auth/mod.ts";
import { notSupported, ProtocolError, SqlError, SQLSTATE } from "../../errors.ts";
import { shownText } from "../../log/mod.ts";
import { QueryCount, type QueryEnd, type WireMetrics } from "../../metrics/mod.ts";
import { PROVIDER_UNAVAILABLE } from "./authentication.ts";
import type { PgOptions } from "./contract.ts";
import { ConnectionLost, connectionLost, errorFields, FatalError, isUnhandled, PG_SQLSTATE } from "./failure.ts";
import type { Input } from "./input.ts";
import type { KeptMemory } from "./kept.ts";
import {
  type Bind,
  type Close,
  type Decoder,
  decoderOf,
  type Describe,
  type Execute,
  type Format,
  formatOf,
  type Message,
  NO_FORMATS,
  type Parse,
} from "./messages.ts";
import type { Output } from "./output.ts";
import { decodeParameter } from "./parameters.ts";
import { encodingOf, NO_VALUES, Portal, Portals, type Statement, Statements, type Step } from "./portal.ts";
import type { SessionSettings } from "./session-settings.ts";
import type { SharedTurn } from "./shared-turn.ts";
import { noValues, StatementMaker } from "./statement-maker.ts";
import { Waits } from "./waits.ts";

/** The clock is checked after this many messages that were handled at once. The few messages of a single query never wait. */
const MESSAGES_A_TURN = 32;
/** Interval of progress notices. */
const PROGRESS_MS = 5_000;
const readAhead = (input: Input): void => input.readAhead();

export interface ConnectionOptions extends PgOptions {
  namedStatementLimit: number;
  kept: KeptMemory;
  turn: SharedTurn;
}

export class Connection implements ConnectionState {
  readonly settings: SessionSettings;
  /** performance.now() at the end of the last statement. Undefined while an answer is in progress. */
  idleSince: number | undefined = performance.now();
  private readonly statements: Statements;
  private readonly portals: Portals;
  private readonly waits: Waits;
  private readonly maker: StatementMaker;
  /** True after an error of the extended protocol: all messages up to Sync are skipped. */
  private isSkipping = false;
  /** True while the statements of a request run in a transaction that is committed at the end of the request. */
  private hasRequest = false;
  /** The error sent before the connection ends, because the server closes. */
  private ending: FatalError | undefined;
  private isTerminated = false;
  /**
   * performance.now() when the messages arrived, or when the last statement of them ended. Asking for the time takes longer than
   * handling a message.
   */
  private clockMs = 0;
  /** performance.now() since when it has not paused. */
  private sliceMs = 0;
  private readonly metrics: WireMetrics<"pg"> | undefined;

  constructor(
    private readonly input: Input,
    private readonly output: Output,
    private readonly session: Session,
    { settings, canWrite }: { settings: SessionSettings; canWrite: boolean },
    private readonly options: ConnectionOptions,
  ) {
    this.settings = settings;
    this.metrics = options.metrics?.wires.pg;
    this.statements = new Statements(options.kept);
    this.portals = new Portals(options.kept);
    this.waits = new Waits(settings);
    this.maker = new StatementMaker(session, output, this.portals, this.waits, canWrite);
    settings.report = (name, value) => output.parameterStatus(name, value);
  }

  /** Handles a CancelRequest. Does nothing if no statement is running. */
  cancel(): void {
    this.waits.cancel();
  }

  /** The client has closed its side. Earlier messages are still answered, but a running query is cancelled. */
  gone(): void {
    this.cancel();
  }

  /** Tells an idle client why the connection ends. */
  async dismiss(reason: FatalError): Promise<void> {
    this.output.errorResponse(errorFields(reason));
    await this.output.flush();
  }

  /** Ends the connection after the current answer. */
  end(reason: FatalError): void {
    this.ending = reason;
  }

  forgetUnnamed(): void {
    this.statements.delete("");
    void this.closePortal("");
  }

  /** Serves the client until it disconnects. The output must already be ready for the first ReadyForQuery. */
  async run(): Promise<void> {
    const { input, output } = this, { kept } = this.options;
    try {
      this.readyForQuery();
      await output.flush();
      let bytesSeen = 0;
      for (;;) {
        const isCounted = !input.isReady &&
          kept.keepUnnamed(this, this.statements.unnamedBytes + this.portals.unnamedBytes);
        while (!this.isTerminated && !input.isReady) {
          let count: number | null;
          try {
            count = await input.read();
          } catch (error) {
            if (error instanceof ProtocolError) throw error;
            return;
          }
          if (!input.received(count)) return;
        }
        if (isCounted) kept.endWait(this);
        if (this.isTerminated) return;
        this.metrics?.bytesIn.inc(input.byteCount - bytesSeen);
        bytesSeen = input.byteCount;
        this.idleSince = undefined;
        this.sliceMs = this.clockMs = performance.now();
        const handling = this.handleAll();
        if (handling !== undefined) await handling;
        // Other connections handle their messages first: answers that are written together wake a client once.
        await undefined;
        if (output.isSending) await output.flush();
        const sending = output.send(this.clockMs);
        if (sending !== undefined) {
          let count: number;
          try {
            count = typeof sending === "number" ? sending : await sending;
          } catch (cause) {
            throw connectionLost(cause);
          }
          const rest = output.sent(count);
          if (rest !== undefined) await rest;
          this.options.sockets?.onAnswered();
        }
        if (this.ending !== undefined) throw this.ending;
        this.idleSince = this.clockMs;
      }
    } catch (error) {
      if (error instanceof ConnectionLost) return;
      if (!(error instanceof ProtocolError)) throw error;
      // Only errors that end the connection reach this point.
      output.errorResponse({ ...errorFields(error), severity: "FATAL" });
      await output.flush();
    } finally {
      kept.endWait(this);
      this.closePortals();
      this.statements.clear();
      await this.session.end().catch((error) => this.options.log.error(`undoing a transaction failed: ${error}`));
    }
  }

  /** Handles all messages that are there, as far as that is possible at once. */
  private handleAll(): Promise<void> | undefined {
    const { input, output } = this;
    for (let type = input.next(), handled = 1; type !== undefined; type = input.next(), handled++) {
      const waiting = this.handle(type);
      if (waiting !== undefined || this.ending !== undefined || output.isFull || handled === MESSAGES_A_TURN) {
        return this.handleRest(waiting);
      }
      if (this.isTerminated) return;
    }
  }

  /** Handles the other messages, with pauses. */
  private async handleRest(waiting: void | Promise<void>): Promise<void> {
    const { input, output } = this;
    let handled = 0;
    for (;;) {
      const isAwaited = waiting !== undefined;
      if (isAwaited) {
        // A disconnect is noticed by the read only. Most answers come earlier, in the same turn.
        const reading = setImmediate(readAhead, input);
        try {
          await waiting;
        } finally {
          clearImmediate(reading);
        }
        this.clockMs = performance.now();
      }
      if (this.ending !== undefined) throw this.ending;
      if (output.isFull) await output.flush();
      if ((isAwaited || handled++ % MESSAGES_A_TURN === 0) && input.nextType !== undefined) {
        const isDue = this.options.turn.isDue(this.sliceMs, isAwaited ? this.clockMs : undefined);
        if (isDue) await this.pause();
      }
      const type = this.isTerminated ? undefined : input.next();
      if (type === undefined) return;
      waiting = this.handle(type);
    }
  }

  /** Gives others a turn. */
  private async pause(): Promise<void> {
    await this.options.turn.wait();
    this.sliceMs = performance.now();
  }

  /** Between statements of a script, which may have very many. */
  private async pauseScript(): Promise<void> {
    await this.waits.during(this.output.isFull ? this.output.flush().then(() => this.pause()) : this.pause());
    if (this.ending !== undefined) throw this.ending;
  }

  private handle(type: number): void | Promise<void> {
    const decode = decoderOf(type);
    if (decode === undefined) {
      // The start of the next message is unknown after this.
      throw new FatalError(`unknown message type ${type}`);
    }
    if (this.isSkipping && type !== SYNC && type !== TERMINATE) return;
    if (this.session.identity.external?.isCurrent === false && ASKS.has(type)) return this.handleSignedOn(type, decode);
    return this.handleNow(type, decode);
  }

  /** First asks the identity provider whether the user is still signed in. */
  private async handleSignedOn(type: number, decode: Decoder): Promise<void> {
    try {
      if (!await this.session.identity.external!.renew()) {
        throw new FatalError(
          "the identity provider no longer accepts the user: sign in again",
          PG_SQLSTATE.invalidAuthorization,
        );
      }
    } catch (error) {
      if (!(error instanceof ProviderUnavailable)) throw error;
      await this.fail(new SqlError(PROVIDER_UNAVAILABLE, 0, PG_SQLSTATE.cannotConnectNow));
      if (type === QUERY) this.readyForQuery();
      else this.isSkipping = true;
      return;
    }
    await this.handleNow(type, decode);
  }

  private handleNow(type: number, decode: Decoder): void | Promise<void> {
    let message: Message | undefined;
    try {
      message = decode(this.input.body);
      switch (message.tag) {
        case "query":
          return this.query(message.text);
        case "parse":
          return this.caught(this.parse(message), type, message);
        case "bind":
          return this.caught(this.bind(message), type, message);
        case "describe":
          return this.describe(message);
        case "execute":
          return this.execute(message);
        case "close":
          return this.close(message);
        case "sync":
          return this.sync();
        case "flush":
          return this.output.flush();
        case "terminate":
          this.isTerminated = true;
          return;
        case "functionCall":
          return this.fail(notSupported("a function call message", 0)).then(() => this.readyForQuery());
        case "copy":
          return;
        case "password":
          throw new FatalError("found a password message, which was not requested");
      }
    } catch (error) {
      return this.failedMessage(error, type, message);
    }
  }

  private caught(handling: void | Promise<void>, type: number, message: Message): void | Promise<void> {
    return handling?.catch((error) => this.failedMessage(error, type, message));
  }

  private async failedMessage(error: unknown, type: number, message: Message | undefined): Promise<void> {
    if (error instanceof FatalError || error instanceof ConnectionLost) throw error;
    // The statement failed before Execute. Drivers learn of most errors this way.
    if (type === PARSE || type === BIND) this.begin().end(endOf(error));
    const text = message?.tag === "parse"
      ? message.text
      : message?.tag === "bind"
      ? this.statements.get(message.statement)?.text
      : undefined;
    await this.fail(error, text);
    // Clients send a Sync only in the extended protocol.
    if (type === QUERY) this.readyForQuery();
    else this.isSkipping = true;
  }

  private sync(): void | Promise<void> {
    this.isSkipping = false;
    this.forgetFinished();
    if (!this.hasRequest) return this.readyForQuery();
    return this.endRequest().catch((error) => this.fail(error)).then(() => this.readyForQuery());
  }

  /** Runs the following statements in one transaction, up to Sync or the end of the query. */
  private beginRequest(): void {
    this.hasRequest = true;
    this.session.beginRequest();
  }

  private async endRequest(): Promise<void> {
    this.hasRequest = false;
    await this.session.endRequest();
    this.endLocalSettings();
  }

  /** Restores settings changed by SET LOCAL, unless a transaction is open. */
  private endLocalSettings(): void {
    if (this.session.transaction === "idle") this.settings.endTransaction();
  }

  private begin(): QueryCount {
    return new QueryCount(this.metrics, this.clockMs);
  }

  private readonly progress = {
    everyMs: PROGRESS_MS,
    report: (text: string): void => {
      if (this.waits.isRunning) this.output.noticeMeanwhile(text);
    },
  };

  // The simple protocol

  private async query(text: string): Promise<void> {
    const count = this.begin();
    this.statements.delete("");
    let current = text, at = 0;
    try {
      if (this.portals.get("") !== undefined) await this.closePortal("");
      const parts = await this.maker.split(text);
      if (parts.length === 0) this.output.emptyQueryResponse();
      let left = parts.length;
      for (const part of parts) {
        ({ text: current, at } = part);
        left--;
        if (parts.length > 1) this.beginRequest();
        const begun = this.maker.statement(current, at, []);
        const statement = begun instanceof Promise ? await begun : begun;
        const columns = statement.prepared.columns;
        if (statement.prepared.parameters.length > 0) throw noValues();
        if (columns !== undefined) this.output.rowDescription(columns, NO_FORMATS);
        const portal = new Portal(statement, NO_VALUES, encodingOf(statement, NO_FORMATS));
        const { signal } = this.waits;
        try {
          const step = await this.step(portal, 0, performance.now());
          if (left === 0 && this.hasRequest) await this.endRequest();
          this.complete(step);
        } finally {
          await this.closed(portal);
        }
        if (left === 0) continue;
        if (this.output.isFull || this.options.turn.isDue(this.sliceMs)) await this.pauseScript();
        // A statement that has its result already is not cancelled any more.
        signal.throwIfAborted();
      }
      count.end("queriesCompleted");
    } catch (error) {
      count.end(endOf(error));
      await this.fail(error, current, at);
    }
    this.readyForQuery();
  }

  // The extended protocol

  private parse({ statement: name, text, oids }: Parse): void | Promise<void> {
    if (name !== "") {
      if (this.statements.get(name) !== undefined) {
        throw new SqlError(`prepared statement "${name}" already exists`, 0, PG_SQLSTATE.duplicateStatement);
      }
      if (this.statements.size >= this.options.namedStatementLimit) {
        throw new SqlError(
          `a connection can have at most ${this.options.namedStatementLimit} prepared statements`,
          0,
          PG_SQLSTATE.configurationLimit,
        );
      }
    }
    this.statements.delete(name);
    const keep = (statement: Statement): void => {
      this.statements.set(name, statement);
      this.output.parseComplete();
    };
    const go = (parts: StatementTexts): void | Promise<void> => {
      const [, second] = parts;
      if (second !== undefined) {
        throw new SqlError("a prepared statement must be a single statement: found more after ';'", second.at);
      }
      const statement = this.maker.statement(text, 0, oids);
      return statement instanceof Promise ? statement.then(keep) : keep(statement);
    };
    const parts = this.maker.split(text);
    return parts instanceof Promise ? parts.then(go) : go(parts);
  }

  private bind(message: Bind): void | Promise<void> {
    const statement = this.maker.withOwnTypes(this.statements.existing(message.statement), message);
    if (statement instanceof Promise) return statement.then((made) => this.bindTo(made, message));
    return this.bindTo(statement, message);
  }

  private bindTo(statement: Statement, message: Bind): void | Promise<void> {
    const { portal: name, args, argFormats } = message;
    const { parameters } = statement.prepared;
    if (args.length !== parameters.length) {
      throw new ProtocolError(`Bind has ${args.length} arguments: the statement has ${parameters.length} parameters`);
    }
    if (argFormats.length > 1 && argFormats.length !== args.length) {
      throw new ProtocolError(`Bind has ${argFormats.length} formats for ${args.length} arguments`);
    }
    const values = args.length === 0 ? NO_VALUES : args.map((bytes, index) => {
      return decodeParameter(bytes, formatOf(argFormats, index), statement.oids[index]!, parameters[index]!, index + 1);
    });
    const before = this.portals.get(name);
    if (before !== undefined && name !== "") {
      throw new SqlError(`portal "${name}" already exists`, 0, PG_SQLSTATE.duplicateCursor);
    }
    this.portals.set(name, new Portal(statement, values, encodingOf(statement, message.resultFormats)));
    this.output.bindComplete();
    if (before?.isSuspended) return this.closed(before);
  }

  private describe({ what, name }: Describe): void {
    if (what === "statement") {
      const { oids, prepared } = this.statements.existing(name);
      this.output.parameterDescription(oids);
      this.describeColumns(prepared, NO_FORMATS);
    } else {
      const { statement, encoding } = this.portals.existing(name);
      this.describeColumns(statement.prepared, encoding.formats);
    }
  }

  private describeColumns({ columns }: Prepared, formats: Format[]): void {
    if (columns === undefined) this.output.noData();
    else this.output.rowDescription(columns, formats);
  }

  private execute({ portal: name, rowCountMax }: Execute): void | Promise<void> {
    const count = this.begin();
    let portal: Portal | undefined;
    try {
      portal = this.portals.existing(name);
      const { category } = portal.statement.prepared;
      const isChange = category === "dml" || category === "ddl";
      const { startedMs } = count;
      const step = isChange ? this.change(portal, rowCountMax, startedMs) : this.step(portal, rowCountMax, startedMs);
      if (step instanceof Promise) return this.executed(step, count, portal, name);
      this.completed(step, count);
    } catch (error) {
      return this.failedExecute(error, count, portal, name);
    }
  }

  private async executed(stepping: Promise<Step>, count: QueryCount, portal: Portal, name: string): Promise<void> {
    try {
      this.completed(await stepping, count);
    } catch (error) {
      await this.failedExecute(error, count, portal, name);
    }
  }

  private completed(step: Step, count: QueryCount): void {
    this.complete(step);
    this.clockMs = performance.now();
    count.end("queriesCompleted", this.clockMs);
  }

  private async failedExecute(
    error: unknown,
    count: QueryCount,
    portal: Portal | undefined,
    name: string,
  ): Promise<void> {
    count.end(endOf(error));
    await this.fail(error, portal?.statement.text, portal?.statement.at);
    this.isSkipping = true;
    await this.closePortal(name);
  }

  private change(portal: Portal, rowCountMax: number, startedMs: number): Step | Promise<Step> {
    const isLast = !this.hasRequest && this.isLastOfRequest();
    const step = (isLast: boolean) => {
      if (!isLast) this.beginRequest();
      return this.step(portal, rowCountMax, startedMs);
    };
    return isLast instanceof Promise ? isLast.then(step) : step(isLast);
  }

  /**
   * True if no transaction is needed, because a single statement precedes Sync. Waits for the next message: no client
   * expects an answer before Sync.
   */
  private isLastOfRequest(): boolean | Promise<boolean> {
    const { session, input } = this;
    if (session.transaction !== "idle") return true;
    if (input.nextType !== undefined) return input.nextType === SYNC;
    return input.fill().then((isThere) => isThere && input.nextType === SYNC);
  }

  private close({ what, name }: Close): void | Promise<void> {
    this.output.closeComplete();
    if (what === "portal") return this.closePortal(name);
    this.statements.delete(name);
  }

  private step(portal: Portal, rowCountMax: number, startedMs: number): Step | Promise<Step> {
    const { rowBytes } = this.output;
    this.waits.begin();
    let step: Step | Promise<Step> | undefined;
    try {
      const { waits, settings } = this;
      const progress = settings.sendsProgress ? this.progress : undefined;
      step = portal.step(this.output, rowCountMax, {
        encoding: portal.encoding,
        startedMs,
        signal: waits.signal,
        timeoutMs: settings.statementTimeoutMs,
        progress,
        connection: this,
        lends: true,
      });
      if (!(step instanceof Promise) && portal.statement.prepared.category !== "transaction") {
        if (!this.hasRequest) this.endLocalSettings();
        return step;
      }
      return step = this.stepped(step, portal, rowBytes);
    } finally {
      if (!(step instanceof Promise)) this.endStep(rowBytes);
    }
  }

  private async stepped(stepping: Step | Promise<Step>, portal: Portal, rowBytes: number): Promise<Step> {
    try {
      const step = await stepping;
      if (!this.hasRequest) this.endLocalSettings();
      if (portal.statement.prepared.category === "transaction" && this.session.transaction === "idle") {
        this.endLocalSettings();
        for (const [name, other] of this.portals.entries()) {
          if (other !== portal && other.endsWithTransaction) await this.closePortal(name);
        }
      }
      return step;
    } finally {
      this.endStep(rowBytes);
    }
  }

  /** `rowBytes`: of the output before it. */
  private endStep(rowBytes: number): void {
    this.waits.end();
    this.metrics?.bytesOut.inc(this.output.rowBytes - rowBytes);
  }

  private complete(step: Step): void {
    if ("rowCount" in step) this.metrics?.rowsOut.inc(step.rowCount);
    else if (step.kind === "complete" && step.tag.startsWith(INSERTED)) {
      this.metrics?.rowsIn.inc(Number(step.tag.slice(INSERTED.length)));
    }
    if (step.kind === "complete") this.output.commandComplete(step.tag);
    else if (step.kind === "suspended") this.output.portalSuspended();
    else this.output.emptyQueryResponse();
  }

  /** Sends the error to the client and marks the transaction as failed. */
  private async fail(error: unknown, text?: string, at?: number): Promise<void> {
    if (error instanceof ConnectionLost) throw error;
    const { metrics, log } = this.options;
    if (isUnhandled(error)) {
      metrics?.unhandledErrors.inc();
      log.error(
        `failed: ${shownText(text ?? "")}: ${error instanceof Error ? error.stack ?? error.message : String(error)}`,
      );
    } else {
      metrics?.queryErrors.inc();
      log.refused?.({ text: text ?? "", user: shownUser(this.session.identity), error });
    }
    this.output.errorResponse(errorFields(error, text, at));
    this.hasRequest = false;
    await this.session.fail();
    this.endLocalSettings();
  }

  private readyForQuery(): void {
    const { transaction } = this.session;
    this.output.readyForQuery(
      transaction === "idle" ? "I" : transaction === "failed" ? "E" : "T",
    );
  }

  /**
   * Without a transaction, portals are kept after Sync only while they have more rows; a finished portal's name can be
   * reused.
   */
  private forgetFinished(): void {
    if (this.session.transaction === "idle") this.portals.forgetFinished();
  }

  private closePortal(name: string): Promise<void> {
    const portal = this.portals.get(name);
    this.portals.delete(name);
    return portal === undefined ? Promise.resolve() : this.closed(portal);
  }

  /** Errors of a discarded result are only logged. */
  private closed(portal: Portal): Promise<void> {
    return portal.close().catch((error) => this.options.log.error(`closing a result failed: ${error}`));
  }

  deallocate(name?: { text: string; at: number }): void {
    if (name === undefined) return this.statements.clear();
    this.statements.existing(name.text, name.at);
    this.statements.delete(name.text);
  }

  closePortals(name?: { text: string; at: number }): void {
    if (name !== undefined) this.portals.existing(name.text, name.at);
    for (const each of name === undefined ? this.portals.entries().map(([each]) => each) : [name.text]) {
      this.closePortal(each);
    }
  }
}

const QUERY = 0x51, PARSE = 0x50, BIND = 0x42, EXECUTE = 0x45, SYNC = 0x53, TERMINATE = 0x58;
/** Messages that need the database. */
const ASKS: ReadonlySet<number> = new Set([QUERY, PARSE, BIND, EXECUTE]);
/** Start of the tag of an INSERT, followed by the number of rows. */
const INSERTED = "INSERT 0 ";

function endOf(error: unknown): QueryEnd {
  const isCancelled = error instanceof ConnectionLost ||
    (error instanceof SqlError && error.sqlState === SQLSTATE.queryCanceled);
  return isCancelled ? "queriesCancelled" : "queriesFailed";
}
