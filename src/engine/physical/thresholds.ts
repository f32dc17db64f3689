/** When each way pays. Measured with `deno task bench`. */

/** Put-together expressions beyond this size stay apart: a sum of sums doubles with every level. */
export const FUSED_SIZE_MAX = 400;

/** Tables of dense keys are zeroed, and each range of morsels has one. */
export const DENSE_GROUPS_MAX = 65_536;
export const DENSE_BYTES_MAX = 8 << 20;

/** From so many rows on a morsel is grouped first, to see how many groups there are. */
export const SAMPLED_ROWS_MIN = 500_000;
/** With so many groups in the first morsel, rows are written out in parts before they are grouped. */
export const MANY_GROUPS = 8_192;
/** Rows that come of one row of the scan on average: parts hold all rows, so not where a join makes many of few. */
export const PARTITION_PAIRS_MAX = 2;

/** count(DISTINCT x) by bits: 16 MiB a worker. */
export const BITS_MAX = 1n << 27n;
/** With fewer rows, reading them again for each count(DISTINCT x) and more kernels cost more than they save. */
export const DISTINCT_ROWS_MIN = 65_536;

/** Top rows: beyond this limit, all columns of the rows are kept as they come. */
export const TOP_LIMIT_MAX = 10_000;
/** With fewer rows, going twice over them costs more than it saves. */
export const TOP_ROWS_MIN = 16_384;
/** Rows that are worth other workers' help. */
export const HELP_ROWS_MIN = 200_000;
/** Best rows by all workers: each of them keeps so many rows, and the leader all of theirs. */
export const BEST_LIMIT_MAX = 10_000;
/** Best rows are cut down for the first time with so many more than twice the limit. */
export const FIRST_CUT_ROWS = 4_096;

/** Slots of a join's dense index: so many, or so many a row. A hash index takes as much memory. */
export const JOIN_SLOTS = 65_536;
export const JOIN_SLOTS_PER_ROW = 8;
/** A join translates dictionaries up to so many entries, or so many a row, as a whole. */
export const TRANSLATED_ENTRIES = 65_536;
export const TRANSLATED_ENTRIES_PER_ROW = 4;
