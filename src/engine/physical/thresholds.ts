/** Thresholds of the choices, measured with `deno task bench`. */
import type { AheadLimits } from "./plan.ts";

/** Combined expressions beyond this size stay separate: nested sums double with every level. */
export const FUSED_SIZE_MAX = 400;

/** Tables of dense keys are zeroed, and each range of morsels has one. */
export const DENSE_GROUPS_MAX = 65_536;
export const DENSE_BYTES_MAX = 8 << 20;

/** From this many rows on, a morsel is grouped first to estimate the number of groups. */
export const SAMPLED_ROWS_MIN = 500_000;
/** With this many groups in the first morsel, rows are partitioned before grouping. */
export const MANY_GROUPS = 8_192;
/**
 * Maximum average number of rows for each row of the scan: partitions contain all rows, so they do not suit a join that
 * multiplies rows.
 */
export const PARTITION_PAIRS_MAX = 2;

/** count(DISTINCT x) by bits: 16 MiB for each worker. */
export const BITS_MAX = 1n << 27n;
/**
 * With fewer rows, reading them again for each count(DISTINCT x) and compiling more kernels costs more than it saves.
 */
export const DISTINCT_ROWS_MIN = 65_536;

/** Rows of few symbols are looked up in the postings of segments, in a table of at least this many rows: fewer are scanned as fast. */
export const LOOKUP_ROWS_MIN = 262_144;
/** Most symbols that are looked up: each takes a read. */
export const LOOKUP_SYMBOLS_MAX = 16;
/** A segment is read as a whole if more than one row in this many is found. */
export const LOOKUP_ROWS_SHARE = 16;
/** Most segments of a morsel that is looked up. */
export const LOOKUP_SEGMENTS = 64;

/** Top rows: above this limit, all columns of the rows are kept immediately. */
export const TOP_LIMIT_MAX = 10_000;
/** With fewer rows, reading them twice costs more than it saves. */
export const TOP_ROWS_MIN = 16_384;
/** A sort copies rows of at most this many columns into row format: with more, too few rows fit in a cache line. */
export const ROW_FORMAT_COLUMNS_MAX = 32;
/** Number of rows for which other workers' help pays off. */
export const HELP_ROWS_MIN = 200_000;
/** Reading ahead: to begin a stage takes all threads some tenths of a millisecond. */
export const AHEAD_LIMITS: AheadLimits = { stageMsMin: 2, keepingShareMax: 1 / 2, stageShareMax: 0.9 };
/** Best rows by all workers: each worker keeps this many rows, and the leader all of theirs. */
export const BEST_LIMIT_MAX = 10_000;
/** Best rows are first reduced when there are this many more than twice the limit. */
export const FIRST_CUT_ROWS = 4_096;

/** Maximum number of slots of a join's dense index, in total or for each row. A hash index takes as much memory. */
export const JOIN_SLOTS = 65_536;
export const JOIN_SLOTS_PER_ROW = 8;
/** A join fills the index of at least this many right rows in parts: smaller ones are in a cache anyway. */
export const INDEX_PARTS_ROWS_MIN = 1 << 18;
/** A join translates whole dictionaries up to this many entries, in total or for each row. */
export const TRANSLATED_ENTRIES = 65_536;
export const TRANSLATED_ENTRIES_PER_ROW = 4;

/** Maximum size of a batch of a Parquet file, estimated from the file's metadata. */
export const PARQUET_BATCH_BYTES = 1 << 26;
export const PARQUET_BATCH_ROWS_MIN = 256;

/** Groups of packed chunks are added up in a table that stays in a cache, and is merged after each segment. */
export const OFFSET_GROUPS_MAX = 1_024;
/** Smaller parts of a segment are grouped by their values. */
export const OFFSET_ROWS_MIN = 16_384;

/** Segments of which more than one row in this many may pass are read as a whole, if rows are selected by the codes of packed chunks. */
export const SELECTED_ROWS_SHARE = 8;
/** This many rows of a morsel are tested first, and smaller morsels not at all. */
export const SELECTED_ROWS_MIN = 4_096;
