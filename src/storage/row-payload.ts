/**
 * Literal rows as the payload of a block of the log (`blocks.ts`). Most INSERTs have one row, for which a buffer takes longer than its
 * values. So all parts of all columns are written one after the other into the same buffer.
 */
import { type ByteForm, UTF8 } from "../types/text-forms.ts";
import { putValue, typeOf, type Value, type Views, viewsOver } from "../types/mod.ts";
import { COLUMN_WORDS, HEAD_WORDS } from "./blocks.ts";
import { align } from "./bytes.ts";
import type { EncodedBatch } from "./contract.ts";

type LiteralRows = readonly (readonly Value[])[];

/** A larger buffer is not kept. */
const KEPT_BYTES_MAX = 65_536;
const FIRST_BYTES = 4096;
const WORD_BYTES = 4, PAIR_BYTES = 8;

class Scratch {
  views: Views = viewsOver(new ArrayBuffer(FIRST_BYTES));
  sizeBytes = 0;

  /** Adds a part of `count` bytes, padded to 8, and returns its address. Only the padding is set. */
  add(count: number): number {
    const at = this.sizeBytes, end = at + count;
    this.sizeBytes = align(end, 8);
    this.reserve(this.sizeBytes);
    for (let k = end; k < this.sizeBytes; k++) this.views.u8[k] = 0;
    return at;
  }

  private reserve(sizeBytes: number): void {
    const { u8 } = this.views;
    if (sizeBytes <= u8.length) return;
    this.views = viewsOver(new ArrayBuffer(align(Math.max(2 * u8.length, sizeBytes), 8)));
    this.views.u8.set(u8);
  }

  /** Writes a text's bytes at `at`, behind all parts, and returns their number. */
  putText(text: string, form: ByteForm, at: number): number {
    if (form !== UTF8) return this.putBytes(form.toBytes(text), at);
    const { length } = text;
    this.reserve(at + length);
    const { u8 } = this.views;
    // Most texts are short and ASCII. The runtime's encoder takes longer.
    for (let k = 0; k < length; k++) {
      const code = text.charCodeAt(k);
      if (code >= 0x80) return this.putBytes(form.toBytes(text), at);
      u8[at + k] = code;
    }
    return length;
  }

  private putBytes(bytes: Uint8Array, at: number): number {
    this.reserve(at + bytes.length);
    this.views.u8.set(bytes, at);
    return bytes.length;
  }
}

let kept = new Scratch();

/** `types`: of the table's columns. The values have these types already. */
export function encodeRows(rows: LiteralRows, columnIds: readonly number[], types: readonly string[]): EncodedBatch {
  const out = kept;
  out.sizeBytes = 0;
  out.add(WORD_BYTES * (HEAD_WORDS + COLUMN_WORDS * types.length));
  out.views.u32[0] = rows.length;
  out.views.u32[1] = types.length;
  for (let k = 0; k < types.length; k++) {
    const type = types[k], { layout, width } = typeOf(type), values = out.add(width * rows.length);
    let texts: Texts = NO_TEXTS;
    if (layout === "symbol") texts = putSymbols(out, values, rows, k, type);
    else if (layout === "text") texts = putTexts(out, values, rows, k, type);
    else for (let row = 0; row < rows.length; row++) putValue(out.views, type, values, row, rows[row][k]);
    const at = HEAD_WORDS + COLUMN_WORDS * k, { u32 } = out.views;
    u32[at] = columnIds[k];
    u32[at + 1] = width * rows.length;
    u32[at + 2] = texts.sizeBytes;
    u32[at + 3] = texts.symbolCount;
  }
  const payload = out.views.u8.slice(0, out.sizeBytes) as Uint8Array<ArrayBuffer>;
  if (out.views.u8.length > KEPT_BYTES_MAX) kept = new Scratch();
  return { rowCount: rows.length, payload, buffer: payload.buffer };
}

interface Texts {
  sizeBytes: number;
  symbolCount: number;
}
const NO_TEXTS: Texts = { sizeBytes: 0, symbolCount: 0 };

/** Adds the bytes of texts. Returns their offsets and lengths. Length -1: null. */
function putTextBytes(out: Scratch, texts: readonly Value[], type: string): { pairs: number[]; sizeBytes: number } {
  const { bytes: form } = typeOf(type), pairs: number[] = [], from = out.sizeBytes;
  let sizeBytes = 0;
  for (const text of texts) {
    const length = text === null ? -1 : out.putText(String(text), form, from + sizeBytes);
    pairs.push(sizeBytes, length);
    sizeBytes += Math.max(0, length);
  }
  out.add(sizeBytes);
  return { pairs, sizeBytes };
}

function putTexts(out: Scratch, values: number, rows: LiteralRows, column: number, type: string): Texts {
  const { pairs, sizeBytes } = putTextBytes(out, rows.map((row) => row[column]), type);
  out.views.i32.set(pairs, values / WORD_BYTES);
  return { sizeBytes, symbolCount: 0 };
}

function putSymbols(out: Scratch, values: number, rows: LiteralRows, column: number, type: string): Texts {
  const codes = new Map<Value, number>(), at = values / WORD_BYTES;
  for (let row = 0; row < rows.length; row++) {
    const value = rows[row][column];
    let code = value === null ? -1 : codes.get(value);
    if (code === undefined) codes.set(value, code = codes.size);
    out.views.i32[at + row] = code;
  }
  const { pairs, sizeBytes } = putTextBytes(out, [...codes.keys()], type);
  const symbols = out.add(PAIR_BYTES * codes.size);
  out.views.i32.set(pairs, symbols / WORD_BYTES);
  return { sizeBytes, symbolCount: codes.size };
}
