/** A piece of a scan, which one thread reads at a time. */
import type { RowRange } from "../../storage/contract.ts";

/** Rows `start` … `end`-1 of a segment, given by its index in the source. */
export interface Morsel {
  segment: number;
  start: number;
  end: number;
  /** Set for unmatched rows: the id of a join, whose right rows they are. */
  unmatched?: number;
  /** Set if the rows are looked up. `segment` is the first one then, and `end` the expected number of rows. */
  lookup?: Lookup;
  /** Set if the same thread reads the pieces of these rows one after the other. They may be decoded together. */
  around?: RowRange;
}

/** The codes, ascending, that the conditions allow in a symbol column. */
export interface Codes {
  column: number;
  codes: readonly number[];
}

/** The rows of some morsels that have one of the codes. */
export interface Lookup extends Codes {
  pieces: Morsel[];
}
