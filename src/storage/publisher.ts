/**
 * What readers see: versions of the tables, each published as a whole. And what nobody sees any more: memory is freed, and files
 * are removed, once no reader is pinned to a version that listed them.
 */
import { SHARED_WORD } from "./heap.ts";
import type { MemoryBlock, WriterMemory } from "./memory.ts";
import type { DataFiles } from "./datafile.ts";
import { type BranchPublication, changeOf, type Splice, type TableChange } from "./publication.ts";
import type { Segment, Table } from "./table.ts";
import type { WriterOptions } from "./options.ts";

/** Tables as one transaction sees them. */
export interface Unpublished {
  /** What has changed since the last time. Memory that is not used any more is retired as of `version`. */
  publication(version: number): BranchPublication;
}

export class Publisher {
  /** Of the last publication. */
  version = 0;
  /** Copies of the files that are being made: as long as there are any, no file is removed. */
  holds = 0;
  private readonly touched = new Set<Table>();
  /** Dropped since the last publication, and the directories that go after the next checkpoint. */
  private readonly dropped = new Set<Table>();
  private droppedDirectories: string[] = [];
  /** Files that nothing durable lists any more, and the version from which on no reader does. */
  private readonly doomed: { version: number; remove: () => void }[] = [];

  constructor(
    private readonly memory: WriterMemory,
    private readonly options: Pick<WriterOptions, "files" | "heap" | "log" | "publish">,
  ) {}

  /** Its state goes out with the next publication. */
  touch(table: Table): void {
    this.touched.add(table);
  }

  /** The tables whose state is not published yet. */
  get unpublished(): Iterable<Table> {
    return this.touched;
  }

  /** The next publication says that it is gone. */
  drop(table: Table): void {
    this.dropped.add(table);
    this.touched.add(table);
  }

  /** Makes the current state of all touched tables the published one, and that of a transaction its own session's. */
  publish(transaction?: Unpublished): void {
    if (this.touched.size === 0 && transaction === undefined) return;
    const version = this.version + 1;
    const oldest = this.oldestVersion;
    const tables: TableChange[] = [];
    for (const table of this.touched) {
      tables.push(this.publishTable(table, version));
      table.history.push({ version, segments: table.published });
      while (table.history.length > 1 && table.history[1].version <= oldest) table.history.shift();
    }
    for (const table of this.dropped) this.forget(table, version);
    this.dropped.clear();
    this.touched.clear();
    const branch = transaction?.publication(version);
    this.memory.settle();
    this.version = version;
    this.options.publish({ version, tables, branch });
    this.reclaim();
  }

  /** Keeps what a table that is being loaded uses from being freed by other tables' publications; what it no longer uses goes. */
  holdUnpublished(table: Table): void {
    const { splice } = changeOf(table, table.published);
    if (splice !== undefined) countUses(table, splice, (block) => this.memory.discard(block));
    for (const dictionary of table.dictionaries.values()) {
      for (const block of dictionary.outgrown) this.memory.discard(block);
      dictionary.outgrown = [];
    }
    this.memory.settle();
  }

  /** A table that is gone, or never was: its memory, and later its directory. */
  forget(table: Table, version = this.version + 1): void {
    this.touched.delete(table);
    for (const dictionary of table.dictionaries.values()) dictionary.retire(version);
    table.data.close();
    this.droppedDirectories.push(table.directory);
  }

  /** When no reader and no copy can be using the file. */
  removeLater(remove: () => void): void {
    this.doomed.push({ version: this.version, remove });
  }

  get hasDroppedDirectories(): boolean {
    return this.droppedDirectories.length > 0;
  }

  /** The catalogue on disk no longer lists them. */
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
    const oldest = this.oldestVersion;
    while (this.doomed.length > 0 && this.doomed[0].version <= oldest) {
      const { remove } = this.doomed.shift()!;
      try {
        remove();
      } catch (error) {
        const { message } = error as Error;
        this.options.log("ERROR", `a file that is not needed any more could not be removed: ${message}`);
      }
    }
  }

  /** That a reader may be pinned to. */
  private get oldestVersion(): number {
    return Number(Atomics.load(this.options.heap.i64, SHARED_WORD.oldestVersion / 2));
  }

  /** Makes the table's current state the published one: gives what has changed. */
  private publishTable(table: Table, version: number): TableChange {
    const change = changeOf(table, table.publishedSchema === undefined ? [] : table.published);
    if (this.dropped.has(table)) change.dropped = true;
    if (change.splice !== undefined && table.published !== table.segments) {
      countUses(table, change.splice, (block) => this.memory.retire(block, version));
    }
    table.publishedSchema = table.schema;
    for (const dictionary of table.dictionaries.values()) {
      for (const block of dictionary.outgrown) this.memory.retire(block, version);
      dictionary.outgrown = [];
    }
    return change;
  }
}

/** The published list is to become the current one, which differs from it as `splice` says. */
export function countUses(table: Table, { start, count, segments }: Splice, free: (block: MemoryBlock) => void): void {
  countSegments(table.data, table.segments.slice(start, start + segments.length), 1, free);
  countSegments(table.data, table.published.slice(start, start + count), -1, free);
  table.published = table.segments;
}

/** Lists of segments keep memory and data files from going: one more of them, or one less. `taken`: blocks that no list had before. */
export function countSegments(
  data: DataFiles,
  segments: readonly Segment[],
  by: 1 | -1,
  free: (block: MemoryBlock) => void,
  taken: (block: MemoryBlock) => void = () => {},
): void {
  const block = (b: MemoryBlock) => {
    b.refs += by;
    if (b.refs === 0) free(b);
    else if (b.refs === by) taken(b);
  };
  for (const { chunks } of segments) {
    for (const chunk of chunks) {
      if (chunk === undefined) continue;
      if (chunk.values !== undefined) block(chunk.values);
      chunk.texts.forEach(block);
      if (chunk.plain.file >= 0) data.list[chunk.plain.file].liveBytes += by * chunk.plain.sizeBytes;
    }
  }
}
