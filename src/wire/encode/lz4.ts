/**
 * LZ4's block format without a frame, which Parquet calls LZ4_RAW. The runtime has no LZ4.
 * @see https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md
 */

const MATCH_MIN = 4, OFFSET_MAX = 65_535;
/** The last bytes must be literals, and no match may begin close to the end: fast decoders copy more than they need. */
const LITERALS_LAST = 5, MATCH_LAST = 12;
const HASH_BITS = 14;
/** After this many consecutive misses the search takes longer steps, so that incompressible data costs little. */
const SKIP_SHIFT = 6;

/** Source of the search: the reference's fast mode, a table of the last position of each hash of four bytes. */
export function lz4Compress(input: Uint8Array): Uint8Array {
  const size = input.length;
  // For empty input, Parquet decoders accept zero bytes, but not all accept an empty block.
  if (size === 0) return input;
  const out = new Uint8Array(size + Math.ceil(size / 255) + 16);
  const table = new Int32Array(1 << HASH_BITS).fill(-1);
  let to = 0, anchor = 0;
  const word = (at: number) => input[at] | (input[at + 1] << 8) | (input[at + 2] << 16) | (input[at + 3] << 24);
  const length = (rest: number) => {
    for (; rest >= 255; rest -= 255) out[to++] = 255;
    out[to++] = rest;
  };
  const literals = (end: number, matchBits: number) => {
    const count = end - anchor;
    out[to++] = (Math.min(count, 15) << 4) | matchBits;
    if (count >= 15) length(count - 15);
    out.set(input.subarray(anchor, end), to);
    to += count;
  };
  for (let at = 0, misses = 0; at < size - MATCH_LAST;) {
    const here = word(at), hash = Math.imul(here, 0x9e3779b1) >>> (32 - HASH_BITS);
    let from = table[hash];
    table[hash] = at;
    if (from < 0 || at - from > OFFSET_MAX || word(from) !== here) {
      at += 1 + (misses++ >>> SKIP_SHIFT);
      continue;
    }
    misses = 0;
    const start = at, offset = at - from;
    at += MATCH_MIN;
    from += MATCH_MIN;
    while (at < size - LITERALS_LAST && input[at] === input[from]) {
      at++;
      from++;
    }
    const rest = at - start - MATCH_MIN;
    literals(start, Math.min(rest, 15));
    out[to++] = offset & 255;
    out[to++] = offset >>> 8;
    if (rest >= 15) length(rest - 15);
    anchor = at;
  }
  literals(size, 0);
  return out.subarray(0, to);
}
