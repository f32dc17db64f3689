/** The groups of partitions by hashes, in the order of their first rows. */
import { assert } from "../../assert.ts";
import { BoundKernel } from "../compiler/binding.ts";
import { markKernel, placeKernel, prefixKernel } from "../compiler/partition.ts";
import { Workspace } from "../columns.ts";
import type { QueryContext } from "../contract.ts";
import { registerTask, runTask } from "../parallel.ts";
import type { Grouper, GroupTable } from "./group-table.ts";
import { PartTables } from "./part-tables.ts";

const OPERATOR = "GROUP BY";
const PLACE = "GROUP BY: ordering groups";
export const PART_BITS = 8;
export const PARTS = 1 << PART_BITS;

/** Groups of all partitions in the order of their first rows, one list after the other. */
export interface PartGroups {
  grouper: Grouper;
  next(): GroupTable & { kind: "list" } | undefined;
  close(): void;
}

/** Lists of groups, one after the other. */
export type Output = Pick<PartGroups, "next" | "close">;

export function wholeOutput(table: GroupTable & { kind: "list" }, { memory }: QueryContext): Output {
  let isOut = false;
  return {
    next: () => {
      if (isOut) return undefined;
      isOut = true;
      return table;
    },
    close: () => memory.free(table.list, table.listBytes),
  };
}

interface PlaceTask {
  step: "mark" | "place";
  tables: number;
  stride: number;
  bitmap: number;
  before: number;
  list: number;
}

/** Orders the groups of partitions by their first rows. */
class Placer {
  private readonly space: Workspace;
  private readonly kernel: BoundKernel;
  private readonly tables: PartTables;

  constructor(task: PlaceTask, context: QueryContext) {
    const { step, stride } = task, { memory } = context.heap;
    this.space = Workspace.of(context, OPERATOR);
    this.tables = PartTables.at(context, task.tables, PARTS);
    this.kernel = new BoundKernel(
      step === "mark" ? markKernel(memory, stride) : placeKernel(memory, stride),
      [],
      context,
      this.space,
    );
    const cells = step === "mark" ? ["bitmap"] as const : ["bitmap", "before", "list"] as const;
    for (const name of cells) this.kernel.setI32(this.kernel.cells[name], task[name]);
  }

  run(part: number): void {
    const table = this.tables.get(part);
    if (table === undefined) return;
    this.kernel.setI32(this.kernel.cells.records, table.records);
    this.kernel.run(0, table.groups);
  }

  finish(): null {
    return null;
  }

  close(): void {
    this.space.release();
  }
}

/** The groups of all tables by their first rows, which are below `rowLimit`. */
export function inOrderOfRows(
  tables: PartTables,
  stride: number,
  rowLimit: number,
  context: QueryContext,
  space: Workspace,
): GroupTable & { kind: "list" } {
  const { memory, heap } = context;
  const wordCount = Math.ceil((rowLimit + 1) / 64);
  const bitmap = space.allocate(wordCount * 8), before = space.allocate(wordCount * 4);
  heap.u8.fill(0, bitmap, bitmap + wordCount * 8);
  const place: PlaceTask = { step: "mark", tables: tables.address, stride, bitmap, before, list: 0 };
  const run = (task: PlaceTask) => void runTask(PLACE, task, PARTS, context);
  run(place);
  const prefix = new BoundKernel(prefixKernel(heap.memory), [], context, space);
  prefix.setI32(prefix.cells.bitmap, bitmap);
  prefix.setI32(prefix.cells.before, before);
  const groups = prefix.run(0, wordCount);
  let groupCount = 0;
  for (let part = 0; part < PARTS; part++) groupCount += tables.groupCount(part);
  assert(groupCount === groups, "groups have distinct first rows");
  const listBytes = Math.max(8, groups * 4);
  const list = memory.allocate(listBytes, OPERATOR);
  run({ ...place, step: "place", list });
  space.free(bitmap);
  space.free(before);
  return { kind: "list", records: 0, list, listBytes, groups };
}

registerTask(PLACE, (data, context) => new Placer(data as PlaceTask, context));
