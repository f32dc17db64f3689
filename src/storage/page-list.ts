/**
 * The inner level of the tree of a table's segments: pages that lie one after the other. A list on disk has the records of its pages
 * in an extent, which is read when the pages are needed.
 */
import { ByteReader, ByteWriter } from "./bytes.ts";
import type { Extent } from "./extent.ts";
import { Page, type PageRecord, type ReadExtent, Summarised, type Summary, withExtent } from "./page.ts";
import { decodePages, encodePages } from "./page-records.ts";

export class PageList extends Summarised<Omit<Summary, "fileBytes">> {
  /** Number of sequences that use the list and count it. */
  refs = 0;

  private constructor(
    summary: Omit<Summary, "fileBytes">,
    private known: readonly Page[] | undefined,
    onDisk: PageRecord | undefined,
    read: ReadExtent | undefined,
    isLive: boolean,
  ) {
    super(summary, onDisk, read, isLive);
  }

  static of(pages: readonly Page[]): PageList {
    return new PageList(summaryOf(pages), pages, undefined, undefined, pages.some(({ isLive }) => isLive));
  }

  /** A list of a manifest. */
  static stored(record: PageRecord, read: ReadExtent): PageList {
    return new PageList(record, undefined, record, read, false);
  }

  /** The same list on disk. All of its pages must be there. `write`: writes an extent. */
  sealed(write: (bytes: Uint8Array) => Extent): PageList {
    const { pages, summary } = this;
    const out = new ByteWriter();
    encodePages(out, pages.map(({ stored }) => stored));
    const record = { ...summary, ...write(out.done()), fileBytes: sum(pages) };
    return new PageList(summary, pages, record, undefined, this.isLive);
  }

  get isRead(): boolean {
    return this.known !== undefined;
  }

  /** Stays the same objects, because they are counted. @throws {CorruptFileError} if the list is read from a damaged file. */
  get pages(): readonly Page[] {
    if (this.known !== undefined) return this.known;
    const read = this.read!;
    const pages = decodePages(new ByteReader(read(this.stored))).map((record) => Page.stored(record, read));
    // The list has counted them by its record.
    for (const page of pages) page.refs = this.refs > 0 ? 1 : 0;
    return this.known = pages;
  }

  /** The bytes that the list, its pages and their chunks take in each data file. */
  extents(): Summary["fileBytes"] {
    return withExtent(this.onDisk?.fileBytes ?? sum(this.known!), this.extent);
  }

  /** The same without its pages. */
  ownExtents(): Summary["fileBytes"] {
    return withExtent([], this.extent);
  }
}

function sum(pages: readonly Page[]): Summary["fileBytes"] {
  const bytes = new Map<number, number>();
  for (const page of pages) {
    for (const [file, added] of page.extents()) bytes.set(file, (bytes.get(file) ?? 0) + added);
  }
  return [...bytes];
}

function summaryOf(pages: readonly Page[]): Omit<Summary, "fileBytes"> {
  let count = 0, rowCount = 0, uidMin = Infinity, uidMax = 0, version = 0, formats = 0;
  for (const page of pages) {
    version = Math.max(version, page.version);
    formats |= page.formats;
    count += page.count;
    rowCount += page.rowCount;
    uidMin = Math.min(uidMin, page.uidMin);
    uidMax = Math.max(uidMax, page.uidMax);
  }
  const { first } = pages[0], { last } = pages[pages.length - 1];
  return { count, rowCount, first, last, uidMin, uidMax, version, formats };
}
