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
import { numbered, Scatter, type Scattered } from "./group-scatter.ts";
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

/** The groups of a range, and their buckets. */
interface RangeGroups extends Scattered {
  range: number;
  table: HashTable;
}

/** Groups ranges, and divides the buckets of their tables by partitions. */
class RangeGrouper {
  private readonly space: Workspace;
  private readonly scatter: Scatter;
  private readonly grouped: RangeGroups[] = [];

  constructor(
    private readonly task: GroupTask,
    private readonly from: RangeSource,
    context: QueryContext,
  ) {
    this.space = Workspace.of(context, OPERATOR);
    const kernelOf = (writes: boolean) =>
      new BoundKernel(scatterBucketsKernel(context.heap.memory, PART_BITS, writes), [], context, this.space);
    this.scatter = new Scatter({ counting: kernelOf(false), writing: kernelOf(true) }, context, this.space);
  }

  run(k: number): void {
    const range = this.task.first + k, table = this.from.fill(range) as HashTable;
    const scattered = this.scatter.run(BUCKET_BYTES, 0, OPERATOR, (kernel) => {
      kernel.setI32(kernel.cells.buckets, table.buckets);
      kernel.run(0, table.bucketCount);
    });
    this.grouped.push({ range, table, ...scattered });
  }

  finish(): RangeGroups[] {
    return this.grouped;
  }

  close(): void {
    this.space.release();
    this.from.close();
  }
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
        for (const { table, address, offsets, firstNumber } of this.task.grouped) {
          const buckets = address + offsets[part] * BUCKET_BYTES, count = offsets[part + 1] - offsets[part];
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
        const groups = (runTask(GROUP, task, count, context) as RangeGroups[][]).flat();
        const grouped = numbered(groups, next, ({ table }) => table.groups);
        next = grouped.next;
        const merge: MergeTask = { data, tables: tables.address, grouped: grouped.ranges };
        arenas.push(...(runTask(MERGE, merge, PARTS, context) as Arenas[]).flat());
        for (const { table, address, sizeBytes } of grouped.ranges) {
          ofRanges.drop(table);
          memory.free(address, sizeBytes);
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
