/**
 * The memory layout of columns. A column is `rowCount * width` little-endian bytes at one address, without a null
 * bitmap: nulls are sentinels of the type.
 *
 *     i8 i16 i32 i64 f32 f64    one number per row
 *     i128                      two u64 per row, low half first (UUID); null is both halves NULL_I64
 *     i256                      four u64 per row, lowest first (LONG256)
 *     symbol                    i32 code into a dictionary, -1 is null
 *     text                      a pair per row: u32 absolute address of the UTF-8 bytes, i32 byte length; length -1 is null.
 *                               As one i64: address | length << 32, so null is any negative value.
 *                               (On disk and in append batches the address is an offset into the column's heap.)
 */
export type Layout = "i8" | "i16" | "i32" | "i64" | "f32" | "f64" | "i128" | "i256" | "symbol" | "text";

/**
 * A single value, as in literals, parameters and metadata rows; never used in loops over rows: boolean for BOOLEAN;
 * number for BYTE, SHORT, INT, FLOAT, DOUBLE, IPv4 (unsigned); bigint for LONG, DATE (ms), TIMESTAMP (us), TIMESTAMP_NS
 * (ns), UUID (128 bits); string for CHAR, STRING, VARCHAR, SYMBOL; null.
 */
export type Value = null | boolean | number | bigint | string;

/** The form in which a kernel reads a value of up to 64 bits: its bytes, and whether 16 bits are zero-extended. */
export type Form = "i8" | "i16" | "u16" | "i32" | "i64" | "f32" | "f64";

/** Bytes per row. */
export const LAYOUT_WIDTH: Readonly<Record<Layout, number>> = {
  i8: 1,
  i16: 2,
  i32: 4,
  i64: 8,
  f32: 4,
  f64: 8,
  i128: 16,
  i256: 32,
  symbol: 4,
  text: 8,
};

export const NULL_I32 = -2147483648;
export const NULL_I64 = -9223372036854775808n;
/** The greatest i64: the last LONG and the last time. */
export const LONG_MAX = 9223372036854775807n;
/** The null of layout text as one i64: address 0, length -1. */
export const NULL_TEXT = -4294967296n;

/**
 * The typed array for columns of a layout. i128 and i256 have 2 and 4 elements per row, text has 2 (address, length).
 */
export const ARRAY_CONSTRUCTOR = {
  i8: Int8Array,
  i16: Int16Array,
  i32: Int32Array,
  i64: BigInt64Array,
  f32: Float32Array,
  f64: Float64Array,
  i128: BigInt64Array,
  i256: BigInt64Array,
  symbol: Int32Array,
  text: Int32Array,
} as const;
