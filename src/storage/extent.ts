/** Where the words of a page are in the data files. */
export interface Extent {
  readonly file: number;
  readonly offset: number;
  readonly sizeBytes: number;
  readonly crc: number;
}
