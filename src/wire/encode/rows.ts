/**
 * Writes rows as CSV, JSON or PostgreSQL's DataRows in one generated loop. A loop over the columns' writers makes megamorphic calls for every value, which
 * cost more than the formatting; in generated code every call is monomorphic. Covers the common types; others keep their writers.
 */
import { formatDoubleAt, formatFloat, formatInt, formatLong } from "../../types/format/mod.ts";
import type { Batch } from "../../engine/contract.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { ByteSink } from "./sink.ts";
import type { Escape, ValueWriter } from "./forms.ts";
import { PUT_TEXT_MAX, putDate, putMicros, putNanos, putPgMicros, putText, putUnescaped } from "./stores.ts";
import { writeText } from "./types.ts";

/** What the loop generator needs to know about a column. */
export interface LoopColumn {
  /** Index in the batch. */
  index: number;
  type: string;
  quoted: boolean;
  nullText: Uint8Array;
  writer: ValueWriter;
}

/** Writes rows [from, to) of the batch at `at` and returns the end. */
export type RowLoop = (batch: Batch, from: number, to: number, at: number, isFirst: boolean) => number;

/** Statements that set `missing` or write at `at`. They use `base`, the vector's address in rows, and `row`. */
interface Snippet {
  width: number;
  read: string;
  missing?: string;
  write: string;
}

const WORDS = "const p = 2 * (base + row), low = i32[p], high = i32[p + 1];";
const NULL_WORDS = "high === -2147483648 && low === 0";

function instant(put: string): Snippet {
  return { width: 8, read: WORDS, missing: NULL_WORDS, write: `at = ${put}(low, high, bytes, view, at);` };
}

function text(pair: string, missing: string): Pick<Snippet, "read" | "missing" | "write"> {
  return {
    read: pair,
    missing,
    write: `
      const address = u32[p], length = i32[p + 1], end = length <= ${PUT_TEXT_MAX} && at + length + rowBytes <= bytes.length
        ? putShort(memory, address, length, view, at) : -1;
      if (end >= 0) at = end;
      else { at = writeText(u8, address, length, sink, escape, at); bytes = sink.bytes; view = sink.view; }`,
  };
}

const TEXT: Snippet = { width: 4, ...text("const p = base + 2 * row;", "i32[p + 1] < 0") };

const SNIPPETS: Record<string, Snippet> = {
  BYTE: { width: 1, read: "", write: "at = formatInt(i8[base + row], bytes, at);" },
  SHORT: { width: 2, read: "", write: "at = formatInt(i16[base + row], bytes, at);" },
  INT: {
    width: 4,
    read: "const v = i32[base + row];",
    missing: "v === -2147483648",
    write: "at = formatInt(v, bytes, at);",
  },
  LONG: { width: 8, read: WORDS, missing: NULL_WORDS, write: "at = formatLong(low, high, bytes, at);" },
  FLOAT: {
    width: 4,
    read: "const v = f32[base + row];",
    missing: "v - v !== 0",
    write: "at = formatFloat(v, bytes, at);",
  },
  DOUBLE: {
    width: 8,
    read: "const v = f64[base + row];",
    missing: "v - v !== 0",
    write: "at = formatDoubleAt(f64, base + row, bytes, at);",
  },
  DATE: instant("putDate"),
  TIMESTAMP: instant("putMicros"),
  TIMESTAMP_NS: instant("putNanos"),
  SYMBOL: { width: 4, ...text("const c = i32[base + row], p = entries + 2 * c;", "c < 0") },
  SYMBOL_TEXT: TEXT,
  STRING: TEXT,
  VARCHAR: TEXT,
};

/** Where PostgreSQL's text differs. Others keep their writers. */
const PG_TEXT: Record<string, Snippet | undefined> = {
  ...SNIPPETS,
  DATE: undefined,
  TIMESTAMP: instant("putPgMicros"),
  TIMESTAMP_NS: undefined,
};

const WRITE_WIDE = "view.setInt32(at, high); view.setInt32(at + 4, low); at += 8;";

/** PostgreSQL's binary format. */
const PG_BINARY: Record<string, Snippet | undefined> = {
  INT: { ...SNIPPETS.INT, write: "view.setInt32(at, v); at += 4;" },
  LONG: { width: 8, read: WORDS, missing: NULL_WORDS, write: WRITE_WIDE },
  FLOAT: { ...SNIPPETS.FLOAT, write: "view.setInt32(at, i32[base + row]); at += 4;" },
  DOUBLE: { width: 8, read: `const v = f64[base + row]; ${WORDS}`, missing: "v - v !== 0", write: WRITE_WIDE },
  SYMBOL: SNIPPETS.SYMBOL,
  SYMBOL_TEXT: TEXT,
  STRING: TEXT,
  VARCHAR: TEXT,
};

const QUOTE = 0x22, COMMA = 0x2c, OPEN = 0x5b, CLOSE = 0x5d, CR = 0x0d, LF = 0x0a, LETTER_D = 0x44;

const FORMATS = {
  formatDoubleAt,
  formatFloat,
  formatInt,
  formatLong,
  putDate,
  putMicros,
  putNanos,
  putPgMicros,
  writeText,
};

type LoopMaker = (
  heap: SharedHeap,
  sink: ByteSink,
  writers: ValueWriter[],
  indices: number[],
  rowBytes: number,
  escape: Escape,
  putShort: typeof putText,
  formats: typeof FORMATS,
) => RowLoop;

/** Of a `LoopMaker`. */
const PARAMETERS = ["heap", "sink", "writers", "indices", "rowBytes", "escape", "putShort", "formats"];

/** By source text: queries of the same shape share the compiled loop. */
const makers = new Map<string, LoopMaker>();
const MAKERS_MAX = 200;

export type RowFormat =
  | { name: "csv"; delimiter: number }
  | { name: "json"; isLines: boolean }
  /** Of each column: 0 text, 1 binary. */
  | { name: "pg"; formats: readonly number[] };

export function rowLoop(
  columns: readonly LoopColumn[],
  format: RowFormat,
  heap: SharedHeap,
  sink: ByteSink,
  rowBytes: number,
): RowLoop {
  const source = loopText(columns, format);
  let make = makers.get(source);
  if (make === undefined) {
    if (makers.size >= MAKERS_MAX) makers.delete(makers.keys().next().value!);
    make = new Function(...PARAMETERS, source) as LoopMaker;
    makers.set(source, make);
  }
  const writers = columns.map((column) => column.writer), indices = columns.map((column) => column.index);
  const escape = format.name === "pg" ? "none" : format.name;
  return make(heap, sink, writers, indices, rowBytes, escape, escape === "none" ? putText : putUnescaped, FORMATS);
}

const put = (...codes: number[]) => codes.map((code) => `bytes[at++] = ${code};`).join(" ");

/** The source text is made only of constants in this file and numbers, never of a client's text. */
function loopText(columns: readonly LoopColumn[], format: RowFormat): string {
  const snippets = columns.map(({ type }, k) => snippetOf(type, format, k));
  const binds = columns.map(({ type }, k) => {
    const snippet = snippets[k];
    if (snippet === undefined) return `writers[${k}].bind(batch.columns[indices[${k}]]);`;
    const entries = type === "SYMBOL" ? `const entries${k} = (v${k}.dictionary?.entries ?? 0) / 4;` : "";
    return `const v${k} = batch.columns[indices[${k}]], base${k} = v${k}.address / ${snippet.width}; ${entries}`;
  });
  return `
    const { i8, i16, i32, u32, u8, f32, f64 } = heap;
    const { ${Object.keys(FORMATS).join(", ")} } = formats, memory = new DataView(heap.buffer);
    return (batch, from, to, at, isFirst) => {
      ${binds.join("\n")}
      let bytes = sink.bytes, view = sink.view;
      for (let row = from; row < to; row++) {
        if (at + rowBytes > bytes.length) { bytes = sink.ensure(at); view = sink.view; }
        ${rowText(columns, snippets, format)}
      }
      return at;
    };`;
}

function snippetOf(type: string, format: RowFormat, k: number): Snippet | undefined {
  return (format.name !== "pg" ? SNIPPETS : format.formats[k] === 1 ? PG_BINARY : PG_TEXT)[type];
}

function rowText(columns: readonly LoopColumn[], snippets: (Snippet | undefined)[], format: RowFormat): string {
  if (format.name === "pg") {
    const values = columns.map((column, k) => pgValueText(column, snippets[k], k));
    return `
      const start = at;
      bytes[at] = ${LETTER_D}; bytes[at + 5] = ${columns.length >> 8}; bytes[at + 6] = ${columns.length & 255};
      at += 7;
      ${values.join("\n")}
      view.setInt32(start + 1, at - start - 1);`;
  }
  const isJson = format.name === "json";
  const between = isJson && format.isLines ? put(COMMA, LF) : put(COMMA);
  const values = columns.map((column, k) =>
    (k === 0 ? "" : put(isJson ? COMMA : format.delimiter)) + valueText(column, snippets[k], k)
  );
  return `
        ${isJson ? `if (!isFirst || row > from) { ${between} }` : ""}
        ${isJson ? put(OPEN) : ""}
        ${values.join("\n")}
        ${isJson ? put(CLOSE) : put(CR, LF)}`;
}

/** The value after its size, which is -1 for NULL. */
function pgValueText({ type }: LoopColumn, snippet: Snippet | undefined, k: number): string {
  if (snippet === undefined) {
    return `{ const end = writers[${k}].write(row, at + 4); bytes = sink.bytes; view = sink.view;
      view.setInt32(at, end < 0 ? -1 : end - at - 4); at = end < 0 ? at + 4 : end; }`;
  }
  const { read, missing, write } = snippet;
  const entries = type === "SYMBOL" ? `, entries = entries${k}` : "";
  const written = `const size = at; at += 4; ${write} view.setInt32(size, at - size - 4);`;
  return `{ const base = base${k}${entries}; ${read}
    ${missing === undefined ? written : `if (${missing}) { view.setInt32(at, -1); at += 4; } else { ${written} }`} }`;
}

function valueText({ type, quoted, nullText }: LoopColumn, snippet: Snippet | undefined, k: number): string {
  const quote = quoted ? put(QUOTE) : "";
  if (snippet === undefined) {
    return `{ const end = writers[${k}].write(row, at + ${quoted ? 1 : 0}); bytes = sink.bytes; view = sink.view;
      if (end < 0) { ${put(...nullText)} } else { ${quoted ? `bytes[at] = ${QUOTE};` : ""} at = end; ${quote} } }`;
  }
  const { read, missing, write } = snippet;
  const body = `const base = base${k}${type === "SYMBOL" ? `, entries = entries${k}` : ""}; ${read}`;
  const written = `${quote} ${write} ${quote}`;
  return missing === undefined
    ? `{ ${body} ${written} }`
    : `{ ${body} if (${missing}) { ${put(...nullText)} } else { ${written} } }`;
}
