/**
 * Hash tables of partitions. The threads of a query fill them in turn, so their blocks belong to all threads, and their
 * addresses are in shared memory. They are freed even if a thread fails.
 */
import type { QueryContext } from "../contract.ts";
import { BUCKET_BYTES } from "../compiler/hash-groups.ts";
import type { Grouper, GroupTable } from "./group-table.ts";

export type HashTable = GroupTable & { kind: "hash" };

/**
 * Words of a table: records, bytes of the records, capacity, buckets, number of buckets, groups, size of the last block of texts, and in it the next
 * address and the end; and 1 if the table is on disk.
 */
const WORDS = 10, SPILLED = 9;

export class PartTables {
  private constructor(
    private readonly context: QueryContext,
    readonly address: number,
    readonly count: number,
  ) {}

  /** Creates the tables for the thread that leads the query, which must close them. */
  static create(context: QueryContext, count: number, operator: string): PartTables & { close(): void } {
    const { memory, heap } = context, sizeBytes = count * WORDS * 4;
    const address = memory.allocate(sizeBytes, operator);
    heap.i32.fill(0, address >>> 2, (address + sizeBytes) >>> 2);
    const tables = new PartTables(context, address, count);
    const free = () => {
      for (let part = 0; part < count; part++) tables.drop(part);
    };
    const forget = memory.onRelease(free);
    return Object.assign(tables, {
      close: () => {
        forget();
        free();
        memory.free(address, sizeBytes);
      },
    });
  }

  /** Opens the tables at this address, for any thread of the query. */
  static at(context: QueryContext, address: number, count: number): PartTables {
    return new PartTables(context, address, count);
  }

  private wordsOf(part: number): Uint32Array {
    const first = (this.address >>> 2) + part * WORDS;
    return this.context.heap.u32.subarray(first, first + WORDS);
  }

  /** A table has memory for few groups and texts at first: there are many tables, and some partitions may have few groups. */
  private create(grouper: Grouper): HashTable {
    const { limitBytes } = this.context.memory, isSmall = limitBytes > 0 && limitBytes < SMALL_LIMIT_BYTES;
    return grouper.create(isSmall ? 128 : 1_024, isSmall ? 4 << 10 : 32 << 10) as HashTable;
  }

  /** Undefined before the first `with`. */
  get(part: number): HashTable | undefined {
    const words = this.wordsOf(part), [records, sizeBytes, capacity, buckets, bucketCount, groups] = words;
    if (records === 0) return undefined;
    const [arenaBytes, arenaNext, arenaEnd] = words.subarray(6);
    const texts = { arenas: [], arenaBytes, arenaNext, arenaEnd };
    return { kind: "hash", records, sizeBytes, capacity, buckets, bucketCount, groups, ...texts };
  }

  groupCount(part: number): number {
    return this.wordsOf(part)[5];
  }

  /**
   * Calls `use` with the table of a partition, which must not be in use by another thread. New blocks of texts are in its `arenas`, and belong to this
   * thread.
   */
  with(part: number, grouper: Grouper, use: (table: HashTable) => void): void {
    const table = this.get(part) ?? this.create(grouper);
    try {
      use(table);
    } finally {
      // Also after a failure: the table may have other blocks now.
      const { records, sizeBytes, capacity, buckets, bucketCount, groups, arenaBytes, arenaNext, arenaEnd } = table;
      this.context.memory.share(records);
      this.context.memory.share(buckets);
      this.wordsOf(part).set([
        records,
        sizeBytes,
        capacity,
        buckets,
        bucketCount,
        groups,
        arenaBytes,
        arenaNext,
        arenaEnd,
      ]);
    }
  }

  /** True if the partition's rows go to disk. */
  isSpilled(part: number): boolean {
    return this.wordsOf(part)[SPILLED] === 1;
  }

  /** Drops the table. */
  setSpilled(part: number): void {
    this.drop(part);
    this.wordsOf(part)[SPILLED] = 1;
  }

  drop(part: number): void {
    const { memory } = this.context, table = this.get(part);
    if (table === undefined) return;
    this.wordsOf(part).fill(0, 0, SPILLED);
    memory.free(table.records, table.sizeBytes);
    memory.free(table.buckets, table.bucketCount * BUCKET_BYTES);
  }
}

const SMALL_LIMIT_BYTES = 256 << 20;
