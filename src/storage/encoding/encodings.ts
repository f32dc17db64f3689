/** The encodings of a stored chunk as bits of one number, which is in the words of its page (`page-words.ts`). */

const NAMES = ["raw", "constant", "frame", "decimal", "dictionary", "zstd", "postings"] as const;
export type Encoding = typeof NAMES[number];
/** The chunk is encoded, and its page was written before format 7, which records how. */
export const UNKNOWN_ENCODING = 1 << 15;

export function encodingBit(encoding: Encoding): number {
  return 1 << NAMES.indexOf(encoding);
}

/**
 * The rules by which a program decides how chunks are stored. Raise it when chunks of older programs should be stored anew: they are, in
 * the background (`repack.ts`). 0: no encoding, or a program before there were such numbers.
 */
export const PACKING = 1;

/** Postings follow the codes of symbols (`postings.ts`). */
export const HAS_POSTINGS = encodingBit("postings");

/** Summaries of the vectors follow the values (`summaries.ts`). */
export const HAS_SUMMARIES = 1 << 14;

/** `bits`: 0 for a chunk that is stored as it is in memory. */
export function encodingNames(bits: number): string[] {
  const names: string[] = NAMES.filter((_, k) => (bits & (1 << k)) !== 0);
  return (bits & UNKNOWN_ENCODING) === 0 ? names : [...names, "unknown"];
}
