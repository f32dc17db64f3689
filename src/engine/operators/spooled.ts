/** Reads the rows that a wire has spooled as lines of JSON: `[…]`, joined by a comma and a line feed. */
import { joinedBytes } from "../../bytes.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { SpooledNode } from "../../sql/plan.ts";
import { OutputColumns, POLL_ROWS, TextArena, Workspace } from "../columns.ts";
import { type Batch, MORSEL_ROWS, type Operator, type QueryContext } from "../contract.ts";
import { type JsonColumn, jsonColumn, readJsonLine } from "../json-lines.ts";

export function createSpooled(plan: SpooledNode, context: QueryContext): Operator {
  return new Spooled(plan, context);
}

const OPERATOR = "spooled rows";
/** Bytes that are read at a time. The rows of a batch have about as many. A longer line is read alone. */
const PIECE_BYTES = 4 << 20;
const LINE_FEED = 0x0a;

class Spooled implements Operator {
  readonly columns;
  private readonly file: Deno.FsFile;
  private readonly space: Workspace;
  private readonly output: OutputColumns;
  private readonly arena: TextArena;
  private readonly jsonColumns: JsonColumn[];
  private bytesLeft: number;
  /** Lines, the last of which may be incomplete. */
  private piece = new Uint8Array(0);
  /** The first byte of `piece` that is not done, and the end of its last complete line. */
  private at = 0;
  private end = 0;

  constructor(plan: SpooledNode, private readonly context: QueryContext) {
    this.columns = plan.columns;
    this.bytesLeft = plan.sizeBytes;
    this.file = openSpool(plan.path);
    this.space = Workspace.of(context, OPERATOR);
    this.output = new OutputColumns(plan.columns.map(({ type }) => type), this.space);
    this.arena = new TextArena(this.space);
    this.jsonColumns = this.output.vectors.map((vector) => jsonColumn(context.heap, vector, this.arena));
    context.countToRead?.(plan.rowCount);
  }

  next(): Batch | undefined {
    if (this.at >= this.end && !this.readPiece()) return undefined;
    this.arena.release();
    let rowCount = 0;
    for (; rowCount < MORSEL_ROWS && this.at < this.end; rowCount++) {
      if (rowCount % POLL_ROWS === 0) this.context.poll();
      this.at = readJsonLine(this.piece, this.at, this.jsonColumns, rowCount);
    }
    this.context.countRead?.(rowCount);
    return { rowCount, columns: this.output.vectors };
  }

  /** Reads until there is a complete line. Line feeds occur only between rows. Returns false at the end. */
  private readPiece(): boolean {
    const begun = [this.piece.subarray(this.end)];
    let begunBytes = begun[0].length, lineFeed = -1;
    while (lineFeed < 0 && this.bytesLeft > 0) {
      const bytes = this.read(Math.min(PIECE_BYTES, this.bytesLeft));
      this.bytesLeft -= bytes.length;
      lineFeed = this.bytesLeft === 0 ? bytes.length - 1 : bytes.lastIndexOf(LINE_FEED);
      if (lineFeed >= 0) this.end = begunBytes + lineFeed + 1;
      begun.push(bytes);
      begunBytes += bytes.length;
      this.context.memory.need(2 * begunBytes, OPERATOR);
    }
    this.at = 0;
    this.piece = joinedBytes(begun);
    return lineFeed >= 0;
  }

  private read(sizeBytes: number): Uint8Array<ArrayBuffer> {
    this.context.poll();
    const bytes = new Uint8Array(sizeBytes);
    for (let at = 0; at < sizeBytes;) {
      const count = this.file.readSync(bytes.subarray(at));
      if (count === null) throw removed();
      at += count;
    }
    return bytes;
  }

  close(): void {
    this.space.release();
    this.file.close();
  }
}

function openSpool(path: string): Deno.FsFile {
  try {
    return Deno.openSync(path);
  } catch (error) {
    throw error instanceof Deno.errors.NotFound ? removed() : error;
  }
}

function removed(): SqlError {
  return new SqlError("the spooled rows were removed in the meantime", 0, SQLSTATE.objectNotInState);
}
