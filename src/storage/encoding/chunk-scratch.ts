/** The memory in which a thread encodes and decodes chunks (`ChunkCodec.scratch`), by offset, and its limits. */
import { align } from "../bytes.ts";
import { PASSING_RANGES_MAX } from "../contract.ts";
import { VECTOR_ROWS } from "./bits.ts";
import { FOUND_BYTES } from "./kernels.ts";
import { MASK_BYTES, OUTCOMES } from "./selection.ts";
import { HEADER_BYTES, POWER_COUNT, VECTOR_HEADER_BYTES } from "./vectors.ts";

/** Vectors of a segment. */
export const VECTORS_MAX = 64;
/** A vector with more stays raw: an exception costs as much time as several codes. */
export const EXCEPTIONS_MAX = VECTOR_ROWS / 32;
/** 10^22 is the last power that a double has exactly. More places than 15 find no further values. */
export const POWERS = Array.from({ length: POWER_COUNT }, (_, k) => 10 ** k);

// Memory for one vector, by offset: its codes, its integers (f64) or bits, positions of exceptions, what kernels find, its values if
// they come from elsewhere, the powers of ten, and the headers of a chunk and a vector that are elsewhere.
export const CODES = 0;
export const INTEGERS_AT = CODES + 4 * VECTOR_ROWS;
export const POSITIONS = INTEGERS_AT + 8 * VECTOR_ROWS;
export const FOUND_AT = POSITIONS + 2 * EXCEPTIONS_MAX;
export const VALUES = FOUND_AT + FOUND_BYTES;
export const POWERS_AT = VALUES + 8 * VECTOR_ROWS;
export const HEADERS = POWERS_AT + 8 * POWER_COUNT;
/** Of the rows of a chunk. */
export const MASKS = HEADERS + HEADER_BYTES + VECTOR_HEADER_BYTES, OTHER_MASKS = MASKS + VECTORS_MAX * MASK_BYTES;
/** Numbers of rows that the memory of masks holds. */
export const LISTED_MAX = VECTORS_MAX * MASK_BYTES / 4;
/** Of the vectors that were tested last, by `OUTCOME`. */
export const OUTCOMES_AT = OTHER_MASKS + VECTORS_MAX * MASK_BYTES;
/** The ranges of a condition, a mask, and the headers of a chunk of plain integers. */
export const RANGES_AT = OUTCOMES_AT + 8 * Math.ceil(OUTCOMES / 2);
export const SPARE_MASK = align(RANGES_AT + 16 * PASSING_RANGES_MAX, 16);
export const PLAIN_CHUNK = SPARE_MASK + MASK_BYTES;
/** Memory that a codec works in. */
export const CODEC_BYTES = PLAIN_CHUNK + HEADER_BYTES + VECTORS_MAX * VECTOR_HEADER_BYTES;
