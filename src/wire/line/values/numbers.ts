/** Numbers, booleans and instants. */
import { KIND } from "../columns.ts";
import { type Fit, type Fitted, isNull, NULL_LONG, type Source, words } from "./source.ts";

/** BYTE, SHORT, INT: accept integers in range, and booleans as 1 and 0. */
export function integers(
  make: (rowCount: number) => Int8Array | Int16Array | Int32Array,
  low: number,
  high: number,
  nullValue: number,
) {
  return (source: Source): Fitted => {
    const values = make(source.rowCount).fill(nullValue);
    source.forEach((row, kind) => {
      if (kind === KIND.boolean) values[row] = source.column.slots[2 * row];
      else if (kind !== KIND.long) throw source.refuse(row);
      else if (!isNull(source, row)) {
        const value = Number(source.longs[row]);
        if (value < low || value > high) throw source.refuse(row, `${source.longs[row]} is out of range`);
        values[row] = value;
      }
    });
    return { values: new Uint8Array(values.buffer) };
  };
}

export const long: Fit = (source) => {
  if (source.isAll(KIND.long)) return { values: words(source.column.slots) };
  const values = new BigInt64Array(source.rowCount).fill(NULL_LONG);
  source.forEach((row, kind) => {
    if (kind === KIND.long) values[row] = source.longs[row];
    else if (kind === KIND.boolean) values[row] = BigInt(source.column.slots[2 * row]);
    else throw source.refuse(row);
  });
  return { values: new Uint8Array(values.buffer) };
};

/** Returns a number or a boolean as a double; NaN is null. */
function asDouble(source: Source, row: number, kind: number): number {
  if (kind === KIND.double) return source.doubles[row];
  if (kind === KIND.long) return isNull(source, row) ? NaN : Number(source.longs[row]);
  if (kind === KIND.boolean) return source.column.slots[2 * row];
  throw source.refuse(row);
}

export const double: Fit = (source) => {
  if (source.isAll(KIND.double)) return { values: words(source.column.slots) };
  const values = new Float64Array(source.rowCount).fill(NaN);
  source.forEach((row, kind) => values[row] = asDouble(source, row, kind));
  return { values: new Uint8Array(values.buffer) };
};

export const float: Fit = (source) => {
  const values = new Float32Array(source.rowCount).fill(NaN);
  source.forEach((row, kind) => {
    const value = Math.fround(asDouble(source, row, kind));
    values[row] = Number.isFinite(value) ? value : NaN;
  });
  return { values: new Uint8Array(values.buffer) };
};

export const boolean: Fit = (source) => {
  const values = new Uint8Array(source.rowCount);
  source.forEach((row, kind) => {
    if (kind !== KIND.boolean) throw source.refuse(row);
    values[row] = source.column.slots[2 * row];
  });
  return { values };
};

const floorDivide = (value: bigint, by: bigint): bigint => (value - (((value % by) + by) % by)) / by;

/** Nanoseconds in the unit of each kind of timestamp literal. */
const KIND_NANOS: Record<number, bigint> = { [KIND.nanos]: 1n, [KIND.micros]: 1_000n, [KIND.millis]: 1_000_000n };

/** `unitNanos`: nanoseconds in the column's unit. Bare integers have the column's unit. */
export function instants(natural: number, unitNanos: bigint) {
  return (source: Source): Fitted => {
    if (source.isAll(natural) || source.isAll(KIND.long)) return { values: words(source.column.slots) };
    const values = new BigInt64Array(source.rowCount).fill(NULL_LONG);
    source.forEach((row, kind) => {
      const literalNanos = kind === KIND.long ? unitNanos : KIND_NANOS[kind];
      if (literalNanos === undefined) throw source.refuse(row);
      if (isNull(source, row)) return;
      const value = floorDivide(source.longs[row] * literalNanos, unitNanos);
      if (BigInt.asIntN(64, value) !== value) throw source.refuse(row, `${source.longs[row]} is out of range`);
      values[row] = value;
    });
    return { values: new Uint8Array(values.buffer) };
  };
}
