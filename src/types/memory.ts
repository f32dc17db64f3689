/** Reads and writes values of columns in memory, by the type's entry. Loops over many rows use the layout directly. */
import type { Layout, Value } from "./layout.ts";
import { type ColumnType, typeOf } from "./registry.ts";

/** Views of one memory. Addresses are in bytes from its start. */
export interface Views {
  readonly i8: Int8Array;
  readonly u8: Uint8Array;
  readonly i16: Int16Array;
  readonly u16: Uint16Array;
  readonly i32: Int32Array;
  readonly u32: Uint32Array;
  readonly f32: Float32Array;
  readonly f64: Float64Array;
  readonly i64: BigInt64Array;
  readonly u64: BigUint64Array;
}

/** Views of a whole buffer. The 64-bit view ends at the last multiple of eight bytes. */
export function viewsOver(buffer: ArrayBufferLike): Views {
  const view = <T>(type: new (buffer: ArrayBufferLike, from: number, length: number) => T, width: number): T =>
    new type(buffer, 0, Math.floor(buffer.byteLength / width));
  return {
    i8: view(Int8Array, 1),
    u8: view(Uint8Array, 1),
    i16: view(Int16Array, 2),
    u16: view(Uint16Array, 2),
    i32: view(Int32Array, 4),
    u32: view(Uint32Array, 4),
    f32: view(Float32Array, 4),
    f64: view(Float64Array, 8),
    i64: view(BigInt64Array, 8),
    u64: view(BigUint64Array, 8),
  };
}

/** True if the row's value is null. Infinities are null. Types without null have no nulls. */
export function isNullAt(memory: Views, tag: string, address: number, row: number): boolean {
  const type = typeOf(tag);
  return type.nullable && NULL_TESTS[type.layout](memory, address, row, type);
}

/** `isNullAt` for the rows of one column. */
export function nullTest(memory: Views, tag: string, address: number): (row: number) => boolean {
  const type = typeOf(tag), test = NULL_TESTS[type.layout];
  return type.nullable ? (row) => test(memory, address, row, type) : () => false;
}

type NullTest = (memory: Views, address: number, row: number, type: ColumnType) => boolean;

const wideNull: NullTest = ({ i32 }, address, row, { nullWords }) => {
  const words = nullWords.length, at = (address >>> 2) + row * words;
  for (let k = 0; k < words; k++) if (i32[at + k] !== nullWords[k]) return false;
  return true;
};

const NULL_TESTS: Record<Layout, NullTest> = {
  i8: () => false,
  i16: ({ i16 }, address, row, { nullWords }) => i16[(address >>> 1) + row] === nullWords[0],
  i32: wideNull,
  i64: wideNull,
  i128: wideNull,
  i256: wideNull,
  f32: ({ f32 }, address, row) => !Number.isFinite(f32[(address >>> 2) + row]),
  f64: ({ f64 }, address, row) => !Number.isFinite(f64[(address >>> 3) + row]),
  symbol: ({ i32 }, address, row) => i32[(address >>> 2) + row]! < 0,
  text: ({ i32 }, address, row) => i32[(address >>> 2) + 2 * row + 1]! < 0,
};

/** Writes the type's null to rows from … from+rowCount-1. */
export function fillNull(
  memory: Pick<Views, "u8" | "u16" | "i32">,
  tag: string,
  address: number,
  from: number,
  rowCount: number,
): void {
  const { nullWords, width } = typeOf(tag);
  if (width === 1) memory.u8.fill(nullWords[0]!, address + from, address + from + rowCount);
  else if (width === 2) memory.u16.fill(nullWords[0]!, (address >>> 1) + from, (address >>> 1) + from + rowCount);
  else {
    const { i32 } = memory, n = nullWords.length;
    let at = (address >>> 2) + from * n;
    if (n === 1) i32.fill(nullWords[0]!, at, at + rowCount);
    else for (let row = 0; row < rowCount; row++) for (let k = 0; k < n; k++) i32[at++] = nullWords[k]!;
  }
}

/** Fills a column's bytes, which begin at a multiple of the width. */
export function fillNullBytes(bytes: Uint8Array, tag: string): void {
  const { width } = typeOf(tag), { buffer, byteOffset, length } = bytes;
  const u16 = width === 2 ? new Uint16Array(buffer, byteOffset, length / 2) : EMPTY.u16;
  const i32 = width >= 4 ? new Int32Array(buffer, byteOffset, length / 4) : EMPTY.i32;
  fillNull({ u8: bytes, u16, i32 }, tag, 0, 0, length / width);
}
const EMPTY = { u16: new Uint16Array(0), i32: new Int32Array(0) };

/** The value of a row of a type that is neither text nor symbol. */
export function valueIn(memory: Views, tag: string, address: number, row: number): Value {
  const type = typeOf(tag);
  if (isNullAt(memory, tag, address, row)) return null;
  if (type.layout === "i128" || type.layout === "i256") return wordsIn(memory, type, address, row);
  const view = memory[type.layout as "i64"];
  return type.fromBits(view[address / type.width + row]!);
}

function wordsIn({ u64 }: Views, { width, order }: ColumnType, address: number, row: number): bigint {
  const words = width >>> 3, at = (address >>> 3) + row * words;
  let value = 0n;
  for (let word = words - 1; word >= 0; word--) value = value << 64n | u64[at + word]!;
  return order === "signed" ? BigInt.asIntN(64 * words, value) : value;
}

/** Writes a value of a type that is neither text nor symbol. */
export function putValue(memory: Views, tag: string, address: number, row: number, value: Value): void {
  const type = typeOf(tag);
  if (value === null) return fillNull(memory, tag, address, row, 1);
  if (type.layout === "i128" || type.layout === "i256") {
    const words = type.width >>> 3, at = (address >>> 3) + row * words;
    for (let word = 0; word < words; word++) {
      memory.u64[at + word] = BigInt.asUintN(64, BigInt(value) >> BigInt(64 * word));
    }
  } else {
    const view: { [index: number]: number | bigint } = memory[type.layout as "i64"];
    view[address / type.width + row] = type.toBits(value);
  }
}
