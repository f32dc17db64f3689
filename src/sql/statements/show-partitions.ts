import { PARTITION_FORMAT, type PartitionInfo, type TableSnapshot } from "../../storage/contract.ts";
import { readableSize } from "../../types/format/size.ts";
import type { Value } from "../../types/mod.ts";
import { partitionColumns } from "../binder/metadata.ts";
import { showOfTable } from "./show.ts";

export const showPartitions = showOfTable({
  kind: "showPartitions",
  words: '"SHOW" "PARTITIONS" "FROM"',
  reference: {
    syntax: "SHOW PARTITIONS FROM table",
    summary: "The partitions of a table, with their times and sizes.",
  },
  columns: partitionColumns,
  rows: partitionRows,
});

/** The rows of SHOW PARTITIONS and table_partitions(). */
export function partitionRows(table: TableSnapshot): Value[][] {
  const { schema } = table;
  const partitions = table.partitions();
  const detached = table.detachedPartitions().map((partition) => ({
    ...partition,
    name: `${partition.name}.detached`,
  }));
  // A table without partitions shows its single partition even without rows.
  if (schema.partitionBy === "NONE" && partitions.length === 0) return [rowOf(schema, EMPTY, 0, true)];
  return [
    ...partitions.map((partition, index) => rowOf(schema, partition, index, index === partitions.length - 1)),
    ...detached.map((partition) => rowOf(schema, partition, undefined, false)),
  ];
}

const EMPTY = {
  name: "default",
  format: PARTITION_FORMAT.native,
  rowCount: 0,
  timestampMin: null,
  timestampMax: null,
  diskSizeBytes: 0,
};

/** `index`: undefined for a detached partition. */
function rowOf(
  { partitionBy, timestampId }: TableSnapshot["schema"],
  partition: Omit<PartitionInfo, "start" | "version" | "timestampMin" | "timestampMax"> & Bounds,
  index: number | undefined,
  isActive: boolean,
): Value[] {
  const isAttached = index !== undefined;
  return [
    index ?? null,
    partitionBy,
    partition.name,
    timestampId < 0 ? null : partition.timestampMin,
    timestampId < 0 ? null : partition.timestampMax,
    BigInt(partition.rowCount),
    BigInt(partition.diskSizeBytes),
    readableSize(partition.diskSizeBytes),
    false,
    isActive,
    isAttached,
    !isAttached,
    false,
    partition.format !== PARTITION_FORMAT.native,
    -1n,
  ];
}

interface Bounds {
  timestampMin: bigint | null;
  timestampMax: bigint | null;
}
