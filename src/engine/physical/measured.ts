/**
 * Choices that depend on measured data: dictionaries, ranges of keys, the groups of the first morsel, sizes of row
 * groups. EXPLAIN shows them as open, and EXPLAIN ANALYZE shows what was chosen.
 */
export const MEASURED_CHOICES = [
  "dense table",
  "hash table",
  "keys and arguments as columns",
  "keys and arguments in the kernel",
  "partitions of the rows",
  "partitions of the groups",
  "a table for each range",
  "dense index",
  "hash index",
  "symbols by codes",
  "symbols by texts",
  "functions between kernels",
  "functions once for each symbol",
  "full batches",
  "smaller batches",
  "all right rows",
  "last right rows",
  "all rows",
  "last rows",
  "rows in row format",
  "rows by number",
  "one thread",
  "all threads",
] as const;

export type MeasuredChoice = typeof MEASURED_CHOICES[number];
