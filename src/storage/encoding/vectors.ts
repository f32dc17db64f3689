/**
 * Kernels that decode a stored vector of a chunk (`chunk.ts`), header included. The reader of a packed column calls one of them for every
 * 1,024 values, so what a call costs in JavaScript counts: they take addresses alone.
 */
import type { Code, Module, ValueType } from "../../wasm/assembler.ts";
import { align } from "../bytes.ts";
import { CODE_BITS_MAX, packedBytes, VECTOR_ROWS } from "./bits.ts";

/** How the values of a vector are stored. */
export const RAW = 0, CONSTANT = 1, FRAME = 2, DECIMAL = 3, PRODUCT = 4;

/** The first word of a chunk. */
export const MAGIC = 0x444b4350; // "PCKD"
/** Kinds of chunks. */
export const INTEGERS = 0, FLOATS = 1;

/** Offsets in the header of a chunk. The headers of its vectors follow. */
export const CHUNK_AT = { magic: 0, width: 4, kind: 5, rowCount: 8, nullValue: 16 } as const;
export const HEADER_BYTES = 32, VECTOR_HEADER_BYTES = 32;

/** Offsets in the header of a vector. */
export const AT = {
  base: 0,
  slope: 8,
  data: 16,
  encoding: 20,
  codeBits: 21,
  places: 22,
  exceptions: 24,
  nulls: 26,
  span: 28,
} as const;

/** Bytes of the positions, aligned to 8, and of the values of exceptions. */
export function exceptionBytes(count: number, width: number): number {
  return align(2 * count, 8) + width * count;
}

/** Number of powers of ten, from 10^0 on, at `powers`. */
export const POWER_COUNT = 16;

/** `nullAt`, `powers`: addresses of the chunk's NULL (8 bytes) and of the powers of ten. `codes`: memory for the codes of a vector. */
export type DecodeVector = (
  header: number,
  data: number,
  values: number,
  count: number,
  nullAt: number,
  codes: number,
  powers: number,
) => void;

/** Emits code for a vector, with the parameters of `DecodeVector`. It returns if the vector was decoded (`whole-vectors.ts`). */
export type DecodeWhole = (code: Code) => void;

/** The kernels that are called for codes: of the width, by the number of their bits, and what makes values of them. */
interface Callees {
  unpack: readonly number[];
  /** FRAME. */
  frame?: number;
  /** DECIMAL and PRODUCT. */
  decimals?: number;
  products?: number;
  /** Undefined for widths that have none. */
  whole?: DecodeWhole;
}

/** Adds a kernel for values of `width` bytes, and returns its number. */
export function addDecodeVector(module: Module, name: string, width: number, callees: Callees): number {
  const parameters: ValueType[] = ["i32", "i32", "i32", "i32", "i32", "i32", "i32"];
  const { code, index } = module.function(parameters, [], name);
  const [header, data, values, count] = [0, 1, 2, 3];
  const encoding = code.local("i32");
  code.get(header).memory("i32.load8_u", AT.encoding).tee(encoding).op("i32.eqz").if(() => {
    code.get(values).get(data).get(count).i32(width).op("i32.mul").memoryCopy().return();
  });
  code.get(encoding).i32(CONSTANT).op("i32.eq").if(() => {
    fill(code, width);
    code.return();
  });
  callees.whole?.(code);
  callUnpack(code, callees.unpack);
  if (callees.frame !== undefined) frame(code, width, callees.frame);
  else floats(code, width, encoding, callees);
  return index;
}

/** Stores the low `width` bytes of the header's base in all values. */
function fill(code: Code, width: number): void {
  const [header, , values, count] = [0, 1, 2, 3];
  const end = code.local("i32"), value = code.local("i64");
  code.get(header).memory("i64.load", AT.base).set(value);
  code.get(values).get(count).i32(width).op("i32.mul").op("i32.add").set(end);
  code.loop((again) => {
    code.get(values).get(value).memory(width === 8 ? "i64.store" : `i64.store${8 * width}`);
    code.get(values).i32(width).op("i32.add").tee(values).get(end).op("i32.lt_u").brIf(again);
  });
}

/** Unpacks the data's bits by the kernel for their number. */
export function callUnpack(code: Code, unpack: readonly number[]): void {
  const [header, data, , , , codes] = [0, 1, 2, 3, 4, 5];
  const codeBits = code.local("i32"), at = code.local("i32");
  code.get(header).memory("i32.load8_u", AT.codeBits).tee(codeBits).op("i32.eqz").if(() => {
    code.loop((again) => {
      code.get(codes).get(at).op("i32.add").i64(0n).memory("i64.store");
      code.get(at).i32(8).op("i32.add").tee(at).i32(4 * VECTOR_ROWS).op("i32.lt_u").brIf(again);
    });
  }, () => forCodeBits(code, codeBits, (bits) => code.get(data).get(codes).call(unpack[bits]!)));
}

/** Emits `use` for each number of bits from 1 on, of which the one in a local is found by a binary search. */
export function forCodeBits(code: Code, codeBits: number, use: (codeBits: number) => void): void {
  const search = (from: number, to: number): void => {
    if (from === to) return use(from);
    const middle = (from + to + 1) >>> 1;
    code.get(codeBits).i32(middle).op("i32.lt_u").if(() => search(from, middle - 1), () => search(middle, to));
  };
  search(1, CODE_BITS_MAX);
}

/** Pushes the address of a vector's header. */
export function pushHeader(code: Code, chunk: number, vector: number): void {
  code.get(chunk).i32(HEADER_BYTES).op("i32.add").get(vector).i32(VECTOR_HEADER_BYTES).op("i32.mul").op("i32.add");
}

/** Pushes 1 if code 0 is NULL, and 0 if it is a value like others. */
function isReserved(code: Code): void {
  code.get(0).memory("i32.load16_u", AT.exceptions).get(0).memory("i32.load16_u", AT.nulls).op("i32.or");
}

function frame(code: Code, width: number, callee: number): void {
  const [header, , values, count, nullAt, codes] = [0, 1, 2, 3, 4, 5];
  const load = width === 8 ? "i64.load" : "i32.load";
  const base = () => code.get(header).memory(load, AT.base);
  code.get(values).get(count).get(nullAt).memory(load);
  base();
  isReserved(code);
  code.op("select");
  base();
  if (width === 8) code.get(header).memory("i64.load", AT.slope);
  code.get(codes).call(callee);
}

function floats(code: Code, width: number, encoding: number, { decimals, products }: Callees): void {
  const [header, , values, count, nullAt, codes, powers] = [0, 1, 2, 3, 4, 5, 6];
  const base = code.local("f64"), back = code.local("f64");
  code.get(header).memory("i64.load", AT.base).op("f64.convert_i64_s").set(base);
  code.get(powers).get(header).memory("i32.load8_u", AT.places).i32(8).op("i32.mul").op("i32.add").memory("f64.load");
  code.set(back);
  const decode = (giveBack: "f64.div" | "f64.mul", callee: number) => {
    code.get(values).get(count).get(nullAt).memory("i64.load");
    code.get(base).get(back).op(giveBack);
    if (width === 8) code.op("i64.reinterpret_f64");
    else code.op("f32.demote_f64").op("i32.reinterpret_f32").op("i64.extend_i32_u");
    isReserved(code);
    code.op("select").get(base).get(back).get(codes).call(callee);
  };
  code.get(encoding).i32(DECIMAL).op("i32.eq").if(() => decode("f64.div", decimals!), () => {
    code.f64(1).get(back).op("f64.div").set(back);
    decode("f64.mul", products!);
  });
  storeExceptions(code, width);
}

/** Stores the exceptions, which follow the codes: positions (u16), zeros up to a multiple of 8, and values. */
export function storeExceptions(code: Code, width: number): void {
  const [header, data, values] = [0, 1, 2];
  const left = code.local("i32"), position = code.local("i32"), value = code.local("i32");
  code.get(header).memory("i32.load16_u", AT.exceptions).tee(left).if(() => {
    code.get(data).get(header).memory("i32.load8_u", AT.codeBits).i32(packedBytes(1)).op("i32.mul").op("i32.add");
    code.tee(position).get(left).i32(1).op("i32.shl").i32(7).op("i32.add").i32(-8).op("i32.and").op("i32.add");
    code.set(value);
    code.loop((again) => {
      code.get(values).get(position).memory("i32.load16_u").i32(width).op("i32.mul").op("i32.add").get(value);
      if (width === 8) code.memory("i64.load").memory("i64.store");
      else code.memory("i32.load").memory("i32.store");
      code.get(position).i32(2).op("i32.add").set(position).get(value).i32(width).op("i32.add").set(value);
      code.get(left).i32(1).op("i32.sub").tee(left).brIf(again);
    });
  });
}
