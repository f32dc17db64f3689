/**
 * Encodes result batches as bytes of a reply, in the thread that produced the batch. `columns` are those of the result; a batch
 * has its vectors in the same order.
 */
import type { Encoding, ResultColumn } from "../../api.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { Encoder } from "./encoder.ts";
import type { TypeForms, ValueForm } from "./forms.ts";
import { shareRowKernel } from "./kernel/write.ts";
import { createParquetEncoder, ParquetAssembler, type ParquetEncoding } from "./parquet.ts";
import { type Field, type RowForm, RowWriter } from "./row-writer.ts";
import { ByteSink } from "./sink.ts";
import { formsOf } from "./types.ts";

export { ParquetAssembler, shareRowKernel };
export type { Encoder, ParquetEncoding };

/** Most results are small. The buffer grows for others. */
const FIRST_BYTES = 4_096;

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
  const rows = new RowWriter(fieldsOf(encoding, forms, heap, sink), rowFormOf(encoding), heap, sink, poll);
  return {
    joinable: true,
    encode: (batch, from, count, isFirst) => sink.take(rows.write(batch, from, from + count, isFirst)),
    lend: (batch, from, count, isFirst) => sink.lend(rows.write(batch, from, from + count, isFirst)),
  };
}

/** Encodings that write rows one after the other. */
type RowEncoding = Exclude<Encoding, ParquetEncoding>;

function rowFormOf(encoding: RowEncoding): RowForm {
  switch (encoding.name) {
    case "csv":
      return { isPg: false, between: "", end: "\r\n", escape: "csv" };
    case "json":
      return { isPg: false, between: encoding.isLines ? ",\n" : ",", end: "]", escape: "json" };
    case "pg":
      return { isPg: true, between: "", end: "", escape: "none" };
  }
}

function fieldsOf(encoding: RowEncoding, forms: TypeForms[], heap: SharedHeap, sink: ByteSink): Field[] {
  const chosen = encoding.name === "json" && encoding.columns || forms.map((_, index) => index);
  const { escape } = rowFormOf(encoding);
  return chosen.map((index, k) => {
    const form = forms[index], { operation, writer } = valueFormOf(encoding, form, index);
    const field = { index, operation, writer: writer?.(heap, sink, escape) };
    switch (encoding.name) {
      case "json": {
        const quoted = form.jsonQuoted || (form.large === true && encoding.quoteLargeNumbers);
        return { ...field, before: k === 0 ? "[" : ",", quoted, nullText: form.jsonNull };
      }
      case "csv":
        return { ...field, before: k === 0 ? "" : encoding.delimiter, quoted: form.csvQuoted, nullText: form.csvNull };
      case "pg":
        return { ...field, before: "", quoted: false, nullText: "" };
    }
  });
}

function valueFormOf(encoding: RowEncoding, { text, pgText, pgBinary }: TypeForms, index: number): ValueForm {
  if (encoding.name !== "pg") return text;
  return encoding.formats[index] === 1 ? pgBinary : pgText ?? text;
}
