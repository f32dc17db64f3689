/**
 * Prepared statements and portals. A portal is a statement with arguments; it returns its rows in as many steps as the
 * client requests.
 */
import type { Answer, Chunk, ExecuteOptions, Prepared, ResultColumn } from "../../api.ts";
import { assert } from "../../assert.ts";
import { noPortal, noPreparedStatement, SqlError, SQLSTATE } from "../../errors.ts";
import type { Value } from "../../types/mod.ts";
import type { KeptMemory } from "./kept.ts";
import type { Format } from "./messages.ts";
import type { Output } from "./output.ts";

export interface Statement {
  readonly prepared: Prepared;
  readonly text: string;
  /** Offset of `text` in the text that the client sent, in characters. */
  readonly at: number;
  /** The OIDs announced to the client. */
  readonly oids: readonly number[];
  /** Of the last portal. Executions that ask for the same encoding need not compare it. */
  encoding?: PgEncoding;
  /** For a command that the connection executes: DECLARE, FETCH, MOVE and COPY TO STDOUT. */
  command?: (portal: Portal, output: RowSink, options: ExecuteOptions) => Step | Promise<Step>;
}

/** Where rows go. */
export type RowSink = Pick<Output, "rows" | "hasRoom" | "noticeResponse">;
export const NO_VALUES: Value[] = [];

/** Drops the rows, for MOVE. */
export const NO_ROWS: RowSink = { rows: () => undefined, hasRoom: () => true, noticeResponse() {} };

export type Step =
  /** The row limit was reached. There may be more rows. */
  | { kind: "suspended"; rowCount: number }
  | { kind: "complete"; tag: string; rowCount?: number }
  | { kind: "empty" };

interface PgEncoding {
  readonly name: "pg";
  readonly formats: Format[];
}

export class Portal {
  private answer: Answer | undefined;
  private chunks: AsyncIterator<Chunk> | undefined;
  /** The rest of a chunk that exceeded the row limit. */
  private rest: Chunk | undefined;
  /** True if it returns no more rows. */
  isOver = false;

  /** `cursor`: made by DECLARE. It is kept when it has no more rows. */
  constructor(
    readonly statement: Statement,
    readonly values: Value[],
    readonly encoding: PgEncoding,
    readonly cursor?: { holds: boolean },
  ) {}

  get hasBegun(): boolean {
    return this.answer !== undefined;
  }

  /** True if the end of the transaction closes it. */
  get endsWithTransaction(): boolean {
    return this.cursor === undefined ? this.isSuspended : !this.cursor.holds;
  }

  get isSuspended(): boolean {
    return this.chunks !== undefined && !this.isOver;
  }

  /** Sends up to `rowCountMax` rows; 0 means all. */
  step(output: RowSink, rowCountMax: number, options: ExecuteOptions): Step | Promise<Step> {
    if (this.answer !== undefined) return this.advance(this.answer, output, rowCountMax, false);
    if (this.statement.command !== undefined) {
      this.isOver = true;
      return this.statement.command(this, output, options);
    }
    const answer = this.statement.prepared.execute(this.values, options);
    return answer instanceof Promise
      ? this.begun(answer, output, rowCountMax)
      : this.begin(answer, output, rowCountMax, options.lends === true);
  }

  private async begun(answer: Promise<Answer>, output: RowSink, rowCountMax: number): Promise<Step> {
    return await this.begin(await answer, output, rowCountMax, false);
  }

  private begin(answer: Answer, output: RowSink, rowCountMax: number, isLent: boolean): Step | Promise<Step> {
    const { prepared } = this.statement;
    this.answer = answer;
    for (const notice of prepared.notices) output.noticeResponse(notice);
    if (answer.kind === "rows") {
      // A query that still runs is cancelled by its iterator.
      if (answer.ready === undefined) this.chunks = answer.chunks[Symbol.asyncIterator]();
      if (answer.columns !== prepared.columns && !isSame(answer.columns, prepared.columns)) return this.refuse();
    }
    return this.advance(answer, output, rowCountMax, isLent);
  }

  /** `isLent`: its rows have to be copied now. */
  private advance(answer: Answer, output: RowSink, rowCountMax: number, isLent: boolean): Step | Promise<Step> {
    if (answer.kind === "done") {
      const isAgain = this.isOver;
      this.isOver = true;
      if (answer.category === "empty") return { kind: "empty" };
      if (isAgain) return { kind: "complete", tag: commandTag(answer).replace(/\d+$/, "0") };
      return { kind: "complete", tag: commandTag(answer) };
    }
    const rowCount = this.sendReady(output, rowCountMax);
    if (rowCount === undefined && isLent) { for (const each of answer.ready ?? []) each.bytes = each.bytes.slice(); }
    return rowCount === undefined ? this.sendAll(output, rowCountMax) : this.sent(rowCount, rowCountMax);
  }

  private async sendAll(output: RowSink, rowCountMax: number): Promise<Step> {
    return this.sent(await this.send(output, rowCountMax || Infinity), rowCountMax);
  }

  private sent(rowCount: number, rowCountMax: number): Step {
    if (rowCountMax > 0 && rowCount === rowCountMax) return { kind: "suspended", rowCount };
    return { kind: "complete", tag: `${this.statement.prepared.rowsTag ?? "SELECT"} ${rowCount}`, rowCount };
  }

  async close(): Promise<void> {
    const { chunks, isOver } = this;
    this.isOver = true;
    this.rest = undefined;
    if (!isOver) await chunks?.return?.();
  }

  /** Adds all rows to the output if they are there and few; otherwise undefined. */
  private sendReady(output: RowSink, rowCountMax: number): number | undefined {
    const { answer } = this;
    if (answer?.kind !== "rows" || answer.ready === undefined || this.isOver || this.chunks || rowCountMax > 0) return;
    const { ready } = answer;
    const [chunk] = ready;
    if (ready.length > 1 || chunk !== undefined && !output.hasRoom(chunk.bytes)) return;
    this.isOver = true;
    if (chunk === undefined) return 0;
    output.rows(chunk.bytes);
    return chunk.rows;
  }

  private async send(output: RowSink, rowCountMax: number): Promise<number> {
    let left = rowCountMax, rowCount = 0;
    this.chunks ??= (this.answer as Answer & { kind: "rows" }).chunks[Symbol.asyncIterator]();
    while (left > 0 && !this.isOver) {
      let chunk = this.rest;
      this.rest = undefined;
      if (chunk === undefined) {
        const next = await this.chunks!.next();
        if (next.done) {
          this.isOver = true;
          break;
        }
        chunk = next.value;
      }
      if (chunk.rows > left) [chunk, this.rest] = split(chunk, left);
      left -= chunk.rows;
      rowCount += chunk.rows;
      const sent = output.rows(chunk.bytes);
      if (sent !== undefined) await sent;
    }
    return rowCount;
  }

  /**
   * A table may have changed since the columns were announced. Drivers recognise exactly this message and prepare
   * again.
   */
  private async refuse(): Promise<never> {
    await this.close();
    throw new SqlError("cached plan must not change result type", 0, SQLSTATE.featureNotSupported);
  }
}

function isSame(columns: ResultColumn[], known: ResultColumn[] = []): boolean {
  return columns.length === known.length &&
    columns.every(({ name, type }, i) => name === known[i]?.name && type === known[i]?.type);
}

/** Splits a chunk after `rowCount` rows. */
function split(chunk: Chunk, rowCount: number): [Chunk, Chunk] {
  const { bytes } = chunk;
  let at = 0;
  for (let row = 0; row < rowCount; row++) {
    assert(bytes[at] === 0x44, "a chunk contains DataRow messages");
    at += 1 + ((bytes[at + 1]! << 24) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 8) | bytes[at + 4]!);
  }
  return [{ bytes: bytes.subarray(0, at), rows: rowCount }, { bytes: bytes.subarray(at), rows: chunk.rows - rowCount }];
}

/** The command tag as in the dialect: "OK" for all DDL. */
function commandTag({ category, tag }: Answer & { kind: "done" }): string {
  if (category !== "ddl") return tag;
  return tag.startsWith("SELECT ") ? `OK ${tag.slice("SELECT ".length)}` : "OK";
}

/**
 * The encoding of a statement's rows by the formats of Bind: none means all text, one applies to all columns, and extra ones are
 * ignored.
 */
export function encodingOf(statement: Statement, given: Format[]): PgEncoding {
  const columnCount = statement.prepared.columns?.length ?? 0, { encoding } = statement;
  if (encoding !== undefined && hasFormats(encoding.formats, given, columnCount)) return encoding;
  return statement.encoding = { name: "pg", formats: resultFormats(given, columnCount) };
}

function hasFormats(formats: readonly number[], given: Format[], columnCount: number): boolean {
  if (formats.length !== columnCount || given.length > 1 && given.length < columnCount) return false;
  for (let k = 0; k < columnCount; k++) {
    if (formats[k] !== ((given.length > 1 ? given[k] : given[0]) ?? 0)) return false;
  }
  return true;
}

function resultFormats(given: Format[], columnCount: number): Format[] {
  if (columnCount === 0 || given.length === columnCount) return given.slice(0, columnCount);
  if (given.length <= 1) return new Array(columnCount).fill(given[0] ?? 0);
  if (given.length > columnCount) return given.slice(0, columnCount);
  throw new SqlError(
    `Bind has ${given.length} result formats: the result has ${columnCount} columns`,
    0,
    SQLSTATE.protocolViolation,
  );
}

/** Bytes of a statement without its text and of a portal without its values, and for each character of a text: its plan is larger. */
const STATEMENT_BYTES = 4_096, PORTAL_BYTES = 1_024, CHARACTER_BYTES = 12;

function bytesOfStatement(name: string, { text }: Statement): number {
  return STATEMENT_BYTES + CHARACTER_BYTES * (name.length + text.length);
}

/** Its statement counts again, as it may be closed before the portal. */
function bytesOfPortal(name: string, { statement, values }: Portal): number {
  let bytes = PORTAL_BYTES + bytesOfStatement(name, statement);
  for (const value of values) bytes += typeof value === "string" ? 16 + 2 * value.length : 16;
  return bytes;
}

/** What a connection keeps by names. Most clients use the empty name only, which does not count in `memory` (`KeptMemory.keepUnnamed`). */
class Kept<T> {
  protected unnamed: T | undefined;
  protected readonly named = new Map<string, T>();

  constructor(
    private readonly memory: KeptMemory,
    private readonly bytesOf: (name: string, kept: T) => number,
    private readonly missing: (name: string, at: number) => SqlError,
  ) {}

  /** Number of named ones. */
  get size(): number {
    return this.named.size;
  }

  get unnamedBytes(): number {
    return this.unnamed === undefined ? 0 : this.bytesOf("", this.unnamed);
  }

  get(name: string): T | undefined {
    return name === "" ? this.unnamed : this.named.get(name);
  }

  /** `at`: position of the name. @throws {SqlError} if there is none. */
  existing(name: string, at = 0): T {
    const kept = this.get(name);
    if (kept === undefined) throw this.missing(name, at);
    return kept;
  }

  /** Replaces one of the same name. @throws {SqlError} if there is no memory. */
  set(name: string, kept: T): void {
    if (name === "") {
      this.unnamed = kept;
      return;
    }
    this.memory.take(this.bytesOf(name, kept));
    this.delete(name);
    this.named.set(name, kept);
  }

  delete(name: string): void {
    if (name === "") this.unnamed = undefined;
    const kept = this.named.get(name);
    if (kept === undefined) return;
    this.named.delete(name);
    this.memory.give(this.bytesOf(name, kept));
  }
}

/** The prepared statements of a connection. */
export class Statements extends Kept<Statement> {
  constructor(memory: KeptMemory) {
    super(memory, bytesOfStatement, noPreparedStatement);
  }

  clear(): void {
    for (const name of ["", ...this.named.keys()]) this.delete(name);
  }
}

/** The portals of a connection. */
export class Portals extends Kept<Portal> {
  constructor(memory: KeptMemory) {
    super(memory, bytesOfPortal, noPortal);
  }

  entries(): [name: string, portal: Portal][] {
    return [...this.unnamed === undefined ? [] : [["", this.unnamed] as [string, Portal]], ...this.named];
  }

  /** Removes those that return no more rows. */
  forgetFinished(): void {
    if (this.unnamed?.isOver) this.unnamed = undefined;
    if (this.named.size === 0) return;
    for (const [name, portal] of this.named) {
      if (portal.isOver && portal.cursor === undefined) this.delete(name);
    }
  }
}
