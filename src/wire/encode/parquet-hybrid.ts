/**
 * Parquet's hybrid of runs and bit-packed groups, for levels, booleans and indexes of dictionaries:
 *
 *     run      varint 2 * count, the value in whole bytes
 *     packed   varint 2 * groups + 1, groups of 8 values, from the least significant bit
 *
 * @see https://parquet.apache.org/docs/file-format/data-pages/encodings/
 */

const GROUP = 8;

/** A run of one value. */
export function hybridRun(value: number, count: number, bitWidth: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(RUN_BYTES_MAX);
  return bytes.subarray(0, writeRun(bytes, 0, value, count, bitWidth));
}

/** Values `from` … `to - 1`, of at most 24 bits. `reserve`: free bytes in front. */
export function hybrid(
  values: Uint8Array | Int32Array,
  from: number,
  to: number,
  bitWidth: number,
  reserve = 0,
): Uint8Array<ArrayBuffer> {
  const groups = Math.ceil((to - from) / GROUP);
  // A group is at most a run of its own, or packed with its own head.
  const bytes = new Uint8Array(reserve + groups * (bitWidth + RUN_BYTES_MAX));
  let at = reserve, packedFrom = from;
  for (let k = from; k < to;) {
    const value = values[k];
    let end = k + 1;
    while (end < to && values[end] === value) end++;
    if (end - k < GROUP) {
      k += GROUP;
      continue;
    }
    if (packedFrom < k) at = writePacked(bytes, at, values, packedFrom, k, bitWidth);
    at = writeRun(bytes, at, value, end - k, bitWidth);
    k = packedFrom = end;
  }
  if (packedFrom < to) at = writePacked(bytes, at, values, packedFrom, to, bitWidth);
  return bytes.subarray(0, at);
}

const VARINT_BYTES_MAX = 5, RUN_BYTES_MAX = VARINT_BYTES_MAX + 4;

function writeRun(bytes: Uint8Array, at: number, value: number, count: number, bitWidth: number): number {
  at = writeVarint(bytes, at, 2 * count);
  for (let bit = 0; bit < bitWidth; bit += 8) bytes[at++] = value >>> bit;
  return at;
}

function writePacked(
  bytes: Uint8Array,
  at: number,
  values: Uint8Array | Int32Array,
  from: number,
  to: number,
  bitWidth: number,
): number {
  const groups = Math.ceil((to - from) / GROUP);
  at = writeVarint(bytes, at, 2 * groups + 1);
  const end = at + groups * bitWidth;
  let bits = 0, word = 0;
  for (let k = from; k < to; k++) {
    word |= values[k] << bits;
    bits += bitWidth;
    while (bits >= 8) {
      bytes[at++] = word;
      word >>>= 8;
      bits -= 8;
    }
  }
  if (bits > 0) bytes[at] = word;
  return end; // the last group may be filled up with zeros
}

function writeVarint(bytes: Uint8Array, at: number, value: number): number {
  for (; value > 127; value >>>= 7) bytes[at++] = (value & 127) | 128;
  bytes[at++] = value;
  return at;
}
