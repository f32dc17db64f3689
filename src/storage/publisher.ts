/**
 * Publishes versions of the tables to the readers, each as a whole. Frees memory and removes files once no reader is pinned to a
 * version that refers to them.
 */
import { assert } from "../assert.ts";
import type { AccessRecords } from "./access.ts";
import type { MemoryBlock, WriterMemory } from "./memory.ts";
import type { DataFiles } from "./datafile.ts";
import { type BranchPublication, changeOf, type TableChange } from "./publication.ts";
import { pageWords } from "./page-words.ts";
import type { PageList } from "./page-list.ts";
import type { Page } from "./page.ts";
import { type Segment, Segments } from "./segments.ts";
import type { Splice } from "./splices.ts";
import type { Detached, Table } from "./table.ts";
import type { WriterOptions } from "./options.ts";

/** The tables as one transaction sees them. */
export interface Unpublished {
  /** The changes since the last call. Unused memory is retired as of `version`. */
  publication(version: number): BranchPublication;
}

export class Publisher {
  /** The last published version. */
  version = 0;
  /** Number of file copies in progress. No file is removed while it is positive. */
  holds = 0;
  private readonly touched = new Set<Table>();
  /** Tables dropped since the last publication, and directories to remove after the next checkpoint. */
  private readonly dropped = new Set<Table>();
  private droppedDirectories: string[] = [];
  /** Files that nothing durable refers to, and the version from which on no reader refers to them. */
  private readonly doomed: { version: number; remove: () => void }[] = [];

  constructor(
    private readonly memory: WriterMemory,
    private readonly access: AccessRecords,
    private readonly options: Pick<WriterOptions, "files" | "heap" | "log" | "publish">,
    /** LSN of the last block of the log. Between changes all blocks are applied or taken back. */
    private readonly lastLsn: () => number,
  ) {}

  /** Includes the table's state in the next publication. */
  touch(table: Table): void {
    this.touched.add(table);
  }

  /** The tables whose current state is not published yet. */
  get unpublished(): Iterable<Table> {
    return this.touched;
  }

  /** Announces in the next publication that the table is dropped. */
  drop(table: Table): void {
    this.dropped.add(table);
    this.touched.add(table);
  }

  /**
   * Writes the words of pages that readers do not have yet. A change does so before it is final, because memory may run out.
   * @throws {HeapFullError}
   */
  prepare(segments: Segments, before: Segments): void {
    for (const list of segments.differenceFrom(before).flatMap(({ added }) => added)) {
      // What is not read is on disk.
      for (const page of list.isRead ? list.pages : []) {
        if (page.block?.isFree === false || (page.extent !== undefined && !page.isLive)) continue;
        const words = pageWords(page), block = this.memory.allocate(words.sizeBytes, "pages");
        words.write(this.options.heap, block.address);
        if (page.refs > 0) block.refs = 1;
        page.block = block;
      }
    }
  }

  /** Publishes the current state of all touched tables, and a transaction's state to its own session. */
  publish(transaction?: Unpublished): void {
    if (this.touched.size === 0 && transaction === undefined && !this.access.hasUnpublished) return;
    for (const table of this.touched) this.prepare(table.segments, publishedOf(table));
    const version = this.version + 1;
    const tables: TableChange[] = [];
    for (const table of this.touched) tables.push(this.publishTable(table, version));
    for (const table of this.dropped) this.forget(table, version);
    this.dropped.clear();
    this.touched.clear();
    const branch = transaction?.publication(version);
    this.settle();
    this.version = version;
    const access = this.access.hasUnpublished ? this.access.takeUnpublished() : undefined;
    this.options.publish({ version, lsn: this.lastLsn(), tables, branch, access });
    this.reclaim();
  }

  /**
   * Keeps the memory of a table that is being loaded when other tables are published, and frees what the table no
   * longer uses.
   */
  holdUnpublished(table: Table): void {
    countUses(table, (block) => this.memory.discard(block));
    for (const dictionary of table.dictionaries.values()) {
      for (const block of dictionary.outgrown) this.memory.discard(block);
      dictionary.outgrown = [];
    }
    this.settle();
  }

  /** The same for rows that will be added to `table`. They may have enlarged its dictionaries, which readers use. */
  holdStaged(stages: Iterable<Table>, table: Table): void {
    for (const stage of stages) countUses(stage, (block) => this.memory.discard(block));
    const hasGrown = [...table.dictionaries.values()].some(({ outgrown }) => outgrown.length > 0);
    if (!hasGrown) return this.settle();
    this.touch(table);
    this.publish();
  }

  /** Frees the memory that was allocated since the last publication and is unused. */
  settle(): void {
    this.memory.settle(this.version + 1);
  }

  /** Discards a table that was dropped or whose load failed: its memory, and later its directory. */
  forget(table: Table, version = this.version + 1): void {
    this.touched.delete(table);
    for (const dictionary of table.dictionaries.values()) dictionary.retire(version);
    table.data.close();
    this.droppedDirectories.push(table.directory);
  }

  /** Calls `remove` once no reader and no copy can be using the file. */
  removeLater(remove: () => void): void {
    this.doomed.push({ version: this.version, remove });
  }

  get hasDroppedDirectories(): boolean {
    return this.droppedDirectories.length > 0;
  }

  /** Called when the catalogue on disk no longer lists the tables. */
  removeDroppedDirectories(): void {
    for (const directory of this.droppedDirectories) {
      this.removeLater(() => this.options.files.removeDirectory(directory));
    }
    this.droppedDirectories = [];
    this.reclaim();
  }

  /** Frees and removes what no reader can see any more. */
  reclaim(): void {
    this.memory.reclaim();
    if (this.holds > 0) return;
    const oldest = this.memory.oldestVersion;
    while (this.doomed.length > 0 && this.doomed[0].version <= oldest) {
      const { remove } = this.doomed.shift()!;
      try {
        remove();
      } catch (error) {
        const { message } = error as Error;
        this.options.log("ERROR", `an unneeded file could not be removed: ${message}`);
      }
    }
  }

  /** Makes the table's current state the published one and returns the difference. */
  private publishTable(table: Table, version: number): TableChange {
    const change = changeOf(table, publishedOf(table));
    if (this.dropped.has(table)) change.dropped = true;
    const free = (block: MemoryBlock) => this.memory.retire(block, version);
    // Segments move between the two lists, so additions are counted before removals.
    const { detached, publishedDetached } = table;
    const isMoved = detached !== publishedDetached;
    if (isMoved) countDetached(table, detached, 1, free);
    countUses(table, free);
    if (isMoved) countDetached(table, publishedDetached, -1, free);
    table.publishedDetached = detached;
    table.publishedSchema = table.schema;
    for (const dictionary of table.dictionaries.values()) {
      for (const block of dictionary.outgrown) this.memory.retire(block, version);
      dictionary.outgrown = [];
    }
    return change;
  }
}

/** What readers have of the table's segments. */
export function publishedOf({ published, publishedSchema }: Table): Segments {
  return publishedSchema === undefined ? Segments.EMPTY : published;
}

/** Updates reference counts as the current segments replace the published ones. */
function countUses(table: Table, free: (block: MemoryBlock) => void): void {
  const { published } = table;
  const splices = table.segments.differenceFrom(published);
  const exchange = splices.length === 1 ? exchangeOf(splices[0], published) : undefined;
  if (exchange !== undefined) countExchange(table.data, exchange, free);
  else {
    for (const { added } of splices) countLists(table.data, added, 1, free);
    for (const { start, count } of splices) {
      countLists(table.data, published.lists.slice(start, start + count), -1, free);
    }
  }
  table.published = table.segments;
}

/** A page with chunks in memory that takes the place of another one, while the rest of their lists stays the same. No one else uses both lists. */
interface Exchange {
  readonly list: PageList;
  readonly page: Page;
  readonly listBefore: PageList;
  readonly pageBefore: Page;
}

/** What most commits do: they extend some segments of a page. Undefined if it is more than that. */
function exchangeOf({ start, count, added }: Splice<PageList>, before: Segments): Exchange | undefined {
  if (count !== 1 || added.length !== 1) return undefined;
  const [list] = added, listBefore = before.lists[start];
  if (list.refs !== 0 || listBefore.refs !== 1 || !list.isRead || !listBefore.isRead) return undefined;
  const { pages } = list, { pages: pagesBefore } = listBefore;
  if (pages.length !== pagesBefore.length) return undefined;
  const differs = (page: Page, k: number) => page !== pagesBefore[k];
  const k = pages.findIndex(differs);
  if (k < 0 || k !== pages.findLastIndex(differs)) return undefined;
  const page = pages[k], pageBefore = pagesBefore[k];
  if (page.refs !== 0 || pageBefore.refs !== 1 || page.count !== pageBefore.count) return undefined;
  return page.isLive && pageBefore.isLive ? { list, page, listBefore, pageBefore } : undefined;
}

/** Counts like `countLists`, but leaves out what both have: with many segments in a page, that is most of it. */
function countExchange(
  data: DataFiles,
  { list, page, listBefore, pageBefore }: Exchange,
  free: (block: MemoryBlock) => void,
): void {
  const { segments } = page, { segments: segmentsBefore } = pageBefore;
  const use = (block: MemoryBlock) => void block.refs++;
  const release = (block: MemoryBlock) => {
    assert(--block.refs >= 0, "a block of memory is released as often as it is used");
    if (block.refs === 0) free(block);
  };
  list.refs++;
  page.refs++;
  if (page.block !== undefined) use(page.block);
  segments.forEach((segment, k) => segment !== segmentsBefore[k] && eachBlock(segment, use));
  countExtents(data, page.extents(), 1);
  countExtents(data, list.ownExtents(), 1);
  listBefore.refs--;
  pageBefore.refs--;
  if (pageBefore.block !== undefined) release(pageBefore.block);
  segmentsBefore.forEach((segment, k) => segment !== segments[k] && eachBlock(segment, release));
  countExtents(data, pageBefore.extents(), -1);
  countExtents(data, listBefore.ownExtents(), -1);
}

/** The blocks of memory that a segment uses. */
function eachBlock({ chunks }: Segment, use: (block: MemoryBlock) => void): void {
  for (const chunk of chunks) {
    if (chunk?.values !== undefined) use(chunk.values);
    chunk?.texts.forEach(use);
  }
}

function countDetached(table: Table, detached: Detached, by: 1 | -1, free: (block: MemoryBlock) => void): void {
  for (const { lists } of detached.values()) countLists(table.data, lists, by, free);
}

/**
 * Adds or removes a user of lists of pages. The first one of a list counts as a user of its pages, until the last one is gone; that
 * of a page as a user of its memory blocks and data files. `taken` is called for blocks that had no user.
 */
export function countLists(
  data: DataFiles,
  lists: readonly PageList[],
  by: 1 | -1,
  free: (block: MemoryBlock) => void,
  taken: (block: MemoryBlock) => void = () => {},
): void {
  for (const list of lists) {
    list.refs += by;
    assert(list.refs >= 0, "a list of pages is released as often as it is used");
    if (list.refs !== (by === 1 ? 1 : 0)) continue;
    if (list.isRead) countPages(data, list.pages, by, free, taken);
    countExtents(data, list.isRead ? list.ownExtents() : list.extents(), by);
  }
}

function countPages(
  data: DataFiles,
  pages: readonly Page[],
  by: 1 | -1,
  free: (block: MemoryBlock) => void,
  taken: (block: MemoryBlock) => void,
): void {
  const block = (b: MemoryBlock) => {
    b.refs += by;
    assert(b.refs >= 0, "a block of memory is released as often as it is used");
    if (b.refs === 0) free(b);
    else if (b.refs === by) taken(b);
  };
  for (const page of pages) {
    page.refs += by;
    assert(page.refs >= 0, "a page is released as often as it is used");
    if (page.refs !== (by === 1 ? 1 : 0)) continue;
    if (page.block !== undefined) block(page.block);
    countExtents(data, page.extents(), by);
    if (!page.isLive) continue;
    for (const segment of page.segments) eachBlock(segment, block);
  }
}

function countExtents(data: DataFiles, extents: ReturnType<Page["extents"]>, by: 1 | -1): void {
  for (const [id, bytes] of extents) {
    const file = data.list.get(id);
    assert(file !== undefined, "data files stay listed as long as pages are in them");
    file.liveBytes += by * bytes;
    assert(file.liveBytes >= 0, "an extent is released as often as it is used");
  }
}
