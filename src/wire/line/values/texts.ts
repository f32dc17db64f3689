/** Texts and symbols, and types that are read from text. */
import { excerpt } from "../excerpts.ts";
import { KIND } from "../columns.ts";
import { type Fitted, isNull, NULL_LONG, nullPairs, type Source, words } from "./source.ts";

/** Text pairs of texts and tags. */
export const text = (source: Source): Fitted => {
  const { column } = source;
  if (source.isAll(KIND.text)) return { values: words(column.slots), heap: column.heap };
  // The bytes of tags follow those of the texts.
  const heap = new Uint8Array(column.heap.length + column.symbolHeap.length);
  heap.set(column.heap);
  heap.set(column.symbolHeap, column.heap.length);
  const pairs = nullPairs(source.rowCount);
  source.forEach((row, kind) => {
    if (kind === KIND.text) {
      pairs[2 * row] = column.slots[2 * row];
      pairs[2 * row + 1] = column.slots[2 * row + 1];
    } else if (kind === KIND.tag) {
      const symbol = 2 * column.codes[row];
      pairs[2 * row] = column.heap.length + column.symbols[symbol];
      pairs[2 * row + 1] = column.symbols[symbol + 1];
    } else throw source.refuse(row);
  });
  return { values: words(pairs), heap };
};

/** Accepts every kind that has a text, as text. */
export const symbol = (source: Source): Fitted => {
  const { column } = source;
  if (source.isAll(KIND.tag)) return { values: words(column.codes), heap: column.symbolHeap, symbols: column.symbols };
  const codes = new Int32Array(source.rowCount).fill(-1);
  const known = new Map<string, number>();
  source.forEach((row, kind) => {
    const value = symbolText(source, row, kind);
    if (value === undefined) return;
    let code = known.get(value);
    if (code === undefined) known.set(value, code = known.size);
    codes[row] = code;
  });
  const encoded = [...known.keys()].map((value) => new TextEncoder().encode(value));
  const heap = new Uint8Array(encoded.reduce((size, bytes) => size + bytes.length, 0));
  const symbols = new Int32Array(encoded.length * 2);
  let at = 0;
  encoded.forEach((bytes, code) => {
    heap.set(bytes, at);
    symbols[2 * code] = at;
    symbols[2 * code + 1] = bytes.length;
    at += bytes.length;
  });
  return { values: words(codes), heap, symbols };
};

/** The text of a value as a symbol. Undefined for NULL. @throws {LineError} for an array. */
export function symbolText(source: Source, row: number, kind: number): string | undefined {
  if (kind === KIND.double) return Number.isNaN(source.doubles[row]) ? undefined : String(source.doubles[row]);
  if (kind === KIND.long) return isNull(source, row) ? undefined : String(source.longs[row]);
  if (kind === KIND.boolean) return source.column.slots[2 * row] === 1 ? "t" : "f";
  if (kind === KIND.micros || kind === KIND.nanos || kind === KIND.millis) return String(source.longs[row]);
  if (kind === KIND.array) throw source.refuse(row);
  return source.text(row);
}

/** Types that are parsed from text. */
export function readTexts(
  width: number,
  nullValue: bigint,
  read: (bytes: Uint8Array) => bigint | null | undefined,
  literal: number = KIND.text,
) {
  return (source: Source): Fitted => {
    const values = new Uint8Array(source.rowCount * width);
    const view = new DataView(values.buffer);
    for (let at = 0; at < values.length; at += width) writeValue(view, at, width, nullValue);
    source.forEach((row, kind) => {
      if (kind !== KIND.text && kind !== KIND.tag && kind !== literal) throw source.refuse(row);
      const value = read(source.bytes(row));
      if (value === undefined) throw source.refuse(row, `'${excerpt(source.text(row))}' does not fit its column`);
      if (value !== null) writeValue(view, row * width, width, value);
    });
    return { values };
  };
}

export function writeValue(view: DataView, at: number, width: number, value: bigint): void {
  if (width === 2) view.setUint16(at, Number(value), true);
  else if (width === 4) view.setUint32(at, Number(value), true);
  else {
    for (let word = 0; word < width / 8; word++) {
      view.setBigUint64(at + 8 * word, BigInt.asUintN(64, value >> BigInt(64 * word)), true);
    }
  }
}

/** The null of types of several words: each word is the smallest i64. */
export function wideNull(width: number): bigint {
  let value = 0n;
  for (let word = 0; word < width / 8; word++) value = (value << 64n) | BigInt.asUintN(64, NULL_LONG);
  return value;
}
