/**
 * GROUP BY with many groups whose keys or arguments are not written as rows (see `group-partitions.ts`), such as texts. Each range of rows is
 * grouped by itself, in a table that fits into a cache. Then each partition of the keys, by their hashes, takes its groups from the tables of
 * all ranges, in order. So the answer is the same with any number of threads. Texts are copied once for each group of a range and once for
 * each group. Ranges are taken in rounds, so the memory grows with the groups and not with the rows.
 */
import { BoundKernel } from "../compiler/binding.ts";
import { BUCKET_BYTES } from "../compiler/hash-groups.ts";
import { scatterBucketsKernel } from "../compiler/partition.ts";
import { Workspace } from "../columns.ts";
import type { QueryContext } from "../contract.ts";
import { type Participant, registerTask, runTask } from "../parallel.ts";
import type { GroupSample } from "../physical/grouping.ts";
import { inOrderOfRows, PART_BITS, type PartGroups, PARTS, wholeOutput } from "./group-order.ts";
import type { Grouper, GroupTable } from "./group-table.ts";
import type { Morsel } from "./morsel.ts";
import { stagesOf } from "./morsels.ts";
import { type HashTable, PartTables } from "./part-tables.ts";

const OPERATOR = "GROUP BY";
const GROUP = "GROUP BY: grouping ranges", MERGE = "GROUP BY: merging groups of ranges";

/** A participant's input, made by `aggregate.ts`. */
export interface RangeSource {
  grouper: Grouper;
  /** Groups the rows of a range in a new table. */
  fill(range: number): GroupTable;
  close(): void;
}

interface GroupTask {
  /** From which `OpenRanges` opens a participant's input. */
  data: unknown;
  first: number;
}

/** The groups of a range: partition p has buckets offsets[p] … offsets[p + 1]-1 of those at `list`. */
interface RangeGroups {
  range: number;
  table: HashTable;
  list: number;
  offsets: number[];
}

/** Groups ranges, and divides the buckets of their tables by partitions. */
class RangeGrouper {
  private readonly space: Workspace;
  private readonly counter: BoundKernel;
  private readonly writer: BoundKernel;
  private readonly cursors: number;
  private readonly grouped: RangeGroups[] = [];

  constructor(
    private readonly task: GroupTask,
    private readonly from: RangeSource,
    private readonly context: QueryContext,
  ) {
    this.space = Workspace.of(context, OPERATOR);
    const { memory } = context.heap;
    this.counter = new BoundKernel(scatterBucketsKernel(memory, PART_BITS, false), [], context, this.space);
    this.writer = new BoundKernel(scatterBucketsKernel(memory, PART_BITS, true), [], context, this.space);
    this.cursors = this.space.allocate(PARTS * 4);
    for (const kernel of [this.counter, this.writer]) kernel.setI32(kernel.cells.cursors, this.cursors);
  }

  run(k: number): void {
    const { heap, memory } = this.context, range = this.task.first + k;
    const table = this.from.fill(range) as HashTable;
    const cursors = heap.i32.subarray(this.cursors >>> 2, (this.cursors >>> 2) + PARTS);
    cursors.fill(0);
    this.scatter(this.counter, table);
    const offsets = [0];
    for (const count of cursors) offsets.push(offsets.at(-1)! + count);
    const list = memory.allocate(listBytes(table), OPERATOR);
    for (let part = 0; part < PARTS; part++) cursors[part] = list + offsets[part] * BUCKET_BYTES;
    this.scatter(this.writer, table);
    this.grouped.push({ range, table, list, offsets });
  }

  private scatter(kernel: BoundKernel, table: HashTable): void {
    kernel.setI32(kernel.cells.buckets, table.buckets);
    kernel.run(0, table.bucketCount);
  }

  finish(): RangeGroups[] {
    return this.grouped;
  }

  close(): void {
    this.space.release();
    this.from.close();
  }
}

function listBytes({ groups }: HashTable): number {
  return Math.max(8, groups * BUCKET_BYTES);
}

interface MergeTask {
  data: unknown;
  /** The partitions' tables. */
  tables: number;
  /** In the order of the table. */
  grouped: (RangeGroups & { firstNumber: number })[];
}

/** Blocks of texts. */
type Arenas = HashTable["arenas"];

/** Adds the groups of ranges to the tables of partitions. */
class PartMerger {
  private readonly grouper: Grouper;
  private readonly tables: PartTables;
  private readonly arenas: Arenas = [];

  constructor(private readonly task: MergeTask, private readonly from: RangeSource, context: QueryContext) {
    this.grouper = from.grouper.forParts(context);
    this.tables = PartTables.at(context, task.tables, PARTS);
  }

  run(part: number): void {
    this.tables.with(part, this.grouper, (merged) => {
      try {
        for (const { table, list, offsets, firstNumber } of this.task.grouped) {
          const buckets = list + offsets[part] * BUCKET_BYTES, count = offsets[part + 1] - offsets[part];
          if (count > 0) this.grouper.mergePart(merged, { buckets, count, records: table.records, firstNumber });
        }
      } finally {
        this.arenas.push(...merged.arenas);
      }
    });
  }

  finish(): Arenas {
    return this.arenas;
  }

  close(): void {
    this.grouper.close();
    this.from.close();
  }
}

/** Limits of the bytes of a round's tables: absolute, and as a fraction of the query's limit. */
const ROUND_BYTES_MAX = 256 << 20, ROUND_SHARE = 8;

/** How many ranges a round has, estimated by the first morsel's groups. */
function rangesOfRound(ranges: readonly Morsel[][], sample: GroupSample, { memory, heap }: QueryContext): number {
  const bytes = Math.min(ROUND_BYTES_MAX, (memory.limitBytes || heap.sizeBytes()) / ROUND_SHARE);
  const rows = ranges[0]!.reduce((sum, { start, end }) => sum + end - start, 0);
  const rangeBytes = sample.bytes * rows / Math.max(1, sample.scanned);
  return Math.max(1, Math.floor(bytes / rangeBytes));
}

/** Groups all ranges. `data`: from which `OpenRanges` opens a participant's input. */
export function mergeRanges(
  data: unknown,
  ranges: readonly Morsel[][],
  sample: GroupSample,
  ofRanges: Grouper,
  context: QueryContext,
  space: Workspace,
): PartGroups {
  const tables = PartTables.create(context, PARTS, OPERATOR), { memory } = context, arenas: Arenas = [];
  const perRound = rangesOfRound(ranges, sample, context), grouper = ofRanges.forParts(context);
  try {
    let next = 0;
    for (const stage of stagesOf(ranges)) {
      for (let k = 0; k < stage.count; k += perRound) {
        const count = Math.min(perRound, stage.count - k), task: GroupTask = { data, first: stage.first + k };
        const grouped = (runTask(GROUP, task, count, context) as RangeGroups[][]).flat()
          .sort((a, b) => a.range - b.range)
          .map((range) => {
            const firstNumber = next;
            next += range.table.groups;
            return { ...range, firstNumber };
          });
        const merge: MergeTask = { data, tables: tables.address, grouped };
        arenas.push(...(runTask(MERGE, merge, PARTS, context) as Arenas[]).flat());
        for (const { table, list } of grouped) {
          ofRanges.drop(table);
          memory.free(list, listBytes(table));
        }
      }
    }
    const output = wholeOutput(inOrderOfRows(tables, grouper.stride, next, context, space), context);
    return {
      grouper,
      next: () => output.next(),
      close: () => {
        output.close();
        for (const [address, sizeBytes] of arenas) memory.free(address, sizeBytes);
        grouper.close();
        tables.close();
      },
    };
  } catch (error) {
    grouper.close();
    tables.close();
    throw error;
  }
}

export type OpenRanges = (data: unknown, context: QueryContext) => RangeSource;

/** Sets how participants open their input. */
export function registerRangeTasks(open: OpenRanges): void {
  const register = (name: string, make: (data: unknown, from: RangeSource, context: QueryContext) => Participant) =>
    registerTask(name, (data, context) => make(data, open((data as GroupTask | MergeTask).data, context), context));
  register(GROUP, (data, from, context) => new RangeGrouper(data as GroupTask, from, context));
  register(MERGE, (data, from, context) => new PartMerger(data as MergeTask, from, context));
}
