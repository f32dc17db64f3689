/**
 * Encodes result batches as bytes of a reply, in the thread that produced the batch. `columns` are those of the result; a batch
 * has its vectors in the same order.
 */
import type { Encoding, ResultColumn } from "../../api.ts";
import type { Batch } from "../../engine/contract.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { Encoder } from "./encoder.ts";
import type { TypeForms, ValueWriter } from "./forms.ts";
import { createParquetEncoder, ParquetAssembler, type ParquetEncoding } from "./parquet.ts";
import { type RowFormat, type RowLoop, rowLoop } from "./rows.ts";
import { asciiBytes, ByteSink } from "./sink.ts";
import { formsOf, writeInt32 } from "./types.ts";

export { ParquetAssembler };
export type { Encoder, ParquetEncoding };

/** Most results are small. The buffer grows for others. */
const FIRST_BYTES = 4_096;
/** Rows between two checks of the cancel word. */
const POLL_ROWS = 4_096;
/** Batches of at least this many rows are worth a generated loop. */
const LOOP_ROWS_MIN = 1_024;
/** So are batches of an encoder that has written so many rows: it is kept for a statement that is executed again and again. */
const LOOP_ROWS_SEEN = 1_024;
const COMMA = 0x2c, LINE_FEED = 0x0a, QUOTE = 0x22, OPEN = 0x5b, CLOSE = 0x5d, LETTER_D = 0x44;

/** One result column while it is written. */
interface Field {
  index: number;
  writer: ValueWriter;
  quoted: boolean;
  nullText: Uint8Array;
}

/** Writes one row at `at` and returns the end. */
type RowWriter = (row: number, at: number, isFirst: boolean) => number;

export function createEncoder(
  encoding: Encoding,
  columns: readonly ResultColumn[],
  heap: SharedHeap,
  poll: () => void = () => {},
): Encoder {
  if (encoding.name === "parquet") return createParquetEncoder(encoding, columns, heap);
  const sink = new ByteSink(FIRST_BYTES);
  const forms = columns.map((column) => formsOf(column.type));
  let rowBytes = 32;
  for (const form of forms) rowBytes += form.maxBytes + 8;
  sink.rowSlack = rowBytes;
  const fields = fieldsOf(encoding, forms, heap, sink);
  const loopColumns = fields.map((field) => ({ ...field, type: columns[field.index].type }));
  let loop: RowLoop | undefined, rowsSeen = 0;
  const writeRow = ROW_WRITERS[encoding.name](encoding as never, fields, sink);
  const write = (batch: Batch, firstRow: number, rowCount: number, isFirst: boolean): number => {
    let at = 0;
    if (rowCount >= LOOP_ROWS_MIN || rowsSeen >= LOOP_ROWS_SEEN) {
      loop ??= rowLoop(loopColumns, formatOf(encoding), heap, sink, rowBytes);
      for (let row = firstRow, end = firstRow + rowCount; row < end; row += POLL_ROWS) {
        if (row > firstRow) poll();
        at = loop(batch, row, Math.min(end, row + POLL_ROWS), at, isFirst && row === firstRow);
      }
      return at;
    }
    rowsSeen += rowCount;
    for (const field of fields) field.writer.bind(batch.columns[field.index]);
    for (let row = firstRow, end = firstRow + rowCount; row < end; row++) {
      if (((row - firstRow) & (POLL_ROWS - 1)) === POLL_ROWS - 1) poll();
      if (at + rowBytes > sink.bytes.length) sink.ensure(at);
      at = writeRow(row, at, isFirst && row === firstRow);
    }
    return at;
  };
  return {
    joinable: true,
    encode: (batch, firstRow, rowCount, isFirst) => sink.take(write(batch, firstRow, rowCount, isFirst)),
    lend: (batch, firstRow, rowCount, isFirst) => sink.lend(write(batch, firstRow, rowCount, isFirst)),
  };
}

/** Encodings that write rows one after the other. */
type RowEncoding = Exclude<Encoding, ParquetEncoding>;

function formatOf(encoding: RowEncoding): RowFormat {
  switch (encoding.name) {
    case "csv":
      return { name: "csv", delimiter: encoding.delimiter.charCodeAt(0) };
    case "json":
      return { name: "json", isLines: encoding.isLines === true };
    case "pg":
      return encoding;
  }
}

function fieldsOf(encoding: RowEncoding, forms: TypeForms[], heap: SharedHeap, sink: ByteSink): Field[] {
  const chosen = encoding.name === "json" && encoding.columns || forms.map((_, index) => index);
  return chosen.map((index) => {
    const form = forms[index];
    switch (encoding.name) {
      case "json":
        return {
          index,
          writer: form.text(heap, sink, "json"),
          quoted: form.jsonQuoted || (form.large === true && encoding.quoteLargeNumbers),
          nullText: asciiBytes(form.jsonNull),
        };
      case "csv":
        return {
          index,
          writer: form.text(heap, sink, "csv"),
          quoted: form.csvQuoted,
          nullText: asciiBytes(form.csvNull),
        };
      case "pg": {
        const factory = encoding.formats[index] === 1 ? form.pgBinary : form.pgText ?? form.text;
        return { index, writer: factory(heap, sink, "none"), quoted: false, nullText: new Uint8Array(0) };
      }
    }
  });
}

function writeField(field: Field, row: number, at: number, sink: ByteSink): number {
  if (!field.quoted) {
    const end = field.writer.write(row, at);
    return end >= 0 ? end : writeBytes(field.nullText, sink.bytes, at);
  }
  sink.bytes[at] = QUOTE;
  const end = field.writer.write(row, at + 1);
  if (end < 0) return writeBytes(field.nullText, sink.bytes, at);
  sink.bytes[end] = QUOTE;
  return end + 1;
}

function writeBytes(from: Uint8Array, bytes: Uint8Array, at: number): number {
  for (let index = 0; index < from.length; index++) bytes[at + index] = from[index];
  return at + from.length;
}

type RowWriterOf<Name extends RowEncoding["name"]> = (
  encoding: Extract<RowEncoding, { name: Name }>,
  fields: Field[],
  sink: ByteSink,
) => RowWriter;

const jsonRows: RowWriterOf<"json"> = ({ isLines }, fields, sink) => (row, at, isFirst) => {
  if (!isFirst) sink.bytes[at++] = COMMA;
  if (!isFirst && isLines) sink.bytes[at++] = LINE_FEED;
  sink.bytes[at++] = OPEN;
  for (let index = 0; index < fields.length; index++) {
    if (index > 0) sink.bytes[at++] = COMMA;
    at = writeField(fields[index], row, at, sink);
  }
  sink.bytes[at] = CLOSE;
  return at + 1;
};

const csvRows: RowWriterOf<"csv"> = (encoding, fields, sink) => {
  const delimiter = encoding.delimiter.charCodeAt(0);
  return (row, at) => {
    for (let index = 0; index < fields.length; index++) {
      if (index > 0) sink.bytes[at++] = delimiter;
      at = writeField(fields[index], row, at, sink);
    }
    sink.bytes[at] = 0x0d;
    sink.bytes[at + 1] = 0x0a;
    return at + 2;
  };
};

/** DataRow: `D`, int32 size, int16 number of values, then each value with its int32 size, -1 for NULL. */
const pgRows: RowWriterOf<"pg"> = (_encoding, fields, sink) => (row, at) => {
  const start = at;
  sink.bytes[at] = LETTER_D;
  sink.bytes[at + 5] = fields.length >> 8;
  sink.bytes[at + 6] = fields.length;
  at += 7;
  for (let index = 0; index < fields.length; index++) {
    const end = fields[index].writer.write(row, at + 4);
    writeInt32(end < 0 ? -1 : end - at - 4, sink.bytes, at);
    at = end < 0 ? at + 4 : end;
  }
  writeInt32(at - start - 1, sink.bytes, start + 1);
  return at;
};

const ROW_WRITERS = { json: jsonRows, csv: csvRows, pg: pgRows };
