/**
 * Hash tables of partitions. The threads of a query fill them in turn, so their blocks belong to all threads, and their
 * addresses are in shared memory. They are freed even if a thread fails.
 */
import type { QueryContext } from "../contract.ts";
import { BUCKET_BYTES } from "../compiler/aggregate.ts";
import type { Grouper, GroupTable } from "./group-table.ts";

export type HashTable = GroupTable & { kind: "hash" };

/** Words of a table: records, bytes of the records, capacity, buckets, number of buckets, groups. */
const WORDS = 6;

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

  /** Undefined before the first `put`. */
  get(part: number): HashTable | undefined {
    const [records, sizeBytes, capacity, buckets, bucketCount, groups] = this.wordsOf(part);
    if (records === 0) return undefined;
    const texts = { arenas: [], arenaNext: 0, arenaEnd: 0 };
    return { kind: "hash", records, sizeBytes, capacity, buckets, bucketCount, groups, ...texts };
  }

  groupCount(part: number): number {
    return this.wordsOf(part)[5];
  }

  /** Calls `use` with the table of a partition, which must not be in use by another thread. */
  with(part: number, grouper: Grouper, use: (table: HashTable) => void): void {
    const table = this.get(part) ?? grouper.create(FIRST_CAPACITY) as HashTable;
    try {
      use(table);
    } finally {
      // Also after a failure: the table may have other blocks now.
      const { records, sizeBytes, capacity, buckets, bucketCount, groups } = table;
      this.context.memory.share(records);
      this.context.memory.share(buckets);
      this.wordsOf(part).set([records, sizeBytes, capacity, buckets, bucketCount, groups]);
    }
  }

  drop(part: number): void {
    const { memory } = this.context, table = this.get(part);
    if (table === undefined) return;
    this.wordsOf(part).fill(0);
    memory.free(table.records, table.sizeBytes);
    memory.free(table.buckets, table.bucketCount * BUCKET_BYTES);
  }
}

/** There are many tables, and some partitions may have few groups. */
const FIRST_CAPACITY = 1_024;
