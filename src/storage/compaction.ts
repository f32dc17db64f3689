/**
 * Compaction: live extents are moved out of data files of which more than half is dead, so that the files can be removed. It runs in
 * steps, between which commits may change the table: each step begins with the table's current state and replaces it.
 */
import { CorruptFileError } from "../errors.ts";
import type { Chunk } from "./chunks.ts";
import type { DataFile } from "./datafile.ts";
import { Page } from "./page.ts";
import { PageList } from "./page-list.ts";
import type { WriterOptions } from "./options.ts";
import type { Part, Segment } from "./segments.ts";
import type { Table } from "./table.ts";

/** Maximum number of bytes that one checkpoint moves within a table. */
const COMPACT_BYTES_MAX = 256 << 20;
/** Default of `compactStepBytes`: about ten milliseconds. */
const STEP_BYTES = 4 << 20;

export class Compaction {
  /** Ids of the files that will be empty. */
  private readonly sparse = new Set<number>();
  /** Bytes that the current step may still move. */
  private left = 0;

  /**
   * Chooses data files of at least `compactBytes`, to which nothing is added any more. The table's state must be the published one,
   * as its references are counted.
   */
  constructor(
    private readonly table: Table,
    private readonly options: Pick<WriterOptions, "compactBytes" | "compactStepBytes">,
    /** Files that will be empty soon. */
    leaves: (file: DataFile) => boolean = () => false,
  ) {
    let moved = 0;
    for (const file of table.data.list.values()) {
      if (file.sizeBytes < options.compactBytes || 2 * file.liveBytes > file.sizeBytes || moved > COMPACT_BYTES_MAX) {
        continue;
      }
      if (leaves(file)) continue;
      this.sparse.add(file.id);
      file.full = true;
      moved += file.liveBytes;
    }
  }

  /** Moves about `compactStepBytes` bytes. Returns false if nothing is left to move. */
  step(): boolean {
    if (this.sparse.size === 0) return false;
    this.left = this.options.compactStepBytes ?? STEP_BYTES;
    this.table.disk.mapLists((list) => this.moveList(list));
    return this.left <= 0;
  }

  private moveList(list: PageList): PageList {
    if (!this.isSparse(list)) return list;
    return unlessDamaged(list, () => PageList.of(list.pages.map((page) => this.movePage(page))));
  }

  private movePage(page: Page): Page {
    if (!this.isSparse(page)) return page;
    return unlessDamaged(page, () => {
      this.left -= page.extent?.sizeBytes ?? 0;
      return Page.of(page.segments.map((segment) => this.moveSegment(segment)), page.versions);
    });
  }

  private moveSegment(segment: Segment): Segment {
    const isSparse = (chunk: Chunk | undefined) => chunk !== undefined && this.sparse.has(chunk.plain.file);
    if (this.left <= 0 || !segment.chunks.some(isSparse)) return segment;
    return { ...segment, chunks: segment.chunks.map((c) => isSparse(c) ? this.moveChunk(c!) : c), words: undefined };
  }

  private moveChunk(chunk: Chunk): Chunk {
    const { data } = this.table;
    const { file, crc, sizeBytes } = chunk.plain, bytes = new Uint8Array(sizeBytes);
    return unlessDamaged(chunk, () => {
      data.read(chunk.plain, bytes);
      this.left -= bytes.length;
      return { ...chunk, plain: { ...chunk.plain, ...data.append([bytes], crc, data.packingOf(file)) } };
    });
  }

  private isSparse(part: Part): boolean {
    return this.left > 0 && part.extents().some(([file]) => this.sparse.has(file));
  }
}

/** What is damaged stays where it is: a query that reads it reports the error. */
function unlessDamaged<T>(part: T, moved: () => T): T {
  try {
    return moved();
  } catch (error) {
    if (error instanceof CorruptFileError) return part;
    throw error;
  }
}
