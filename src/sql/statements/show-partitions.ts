import type { TableSnapshot } from "../../storage/contract.ts";
import type { Value } from "../../types/mod.ts";
import { TABLE_PARTITIONS } from "../binder/metadata.ts";
import { showOfTable } from "./show.ts";

export const showPartitions = showOfTable({
  kind: "showPartitions",
  words: '"SHOW" "PARTITIONS" "FROM"',
  reference: {
    syntax: "SHOW PARTITIONS FROM table",
    summary: "The partitions of a table, with their times and sizes.",
  },
  columns: TABLE_PARTITIONS,
  rows: partitionRows,
});

/** Also of table_partitions(). */
export function partitionRows(table: TableSnapshot): Value[][] {
  const partitions = table.partitions();
  return partitions.map((partition, i) => [
    partition.index,
    table.schema.partitionBy,
    partition.name,
    table.schema.timestampId < 0 ? null : partition.timestampMin,
    table.schema.timestampId < 0 ? null : partition.timestampMax,
    BigInt(partition.rowCount),
    BigInt(partition.diskSizeBytes),
    readableSize(partition.diskSizeBytes),
    false,
    i === partitions.length - 1,
    true,
    false,
    false,
    false,
    -1n,
  ]);
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

function readableSize(bytes: number): string {
  let size = bytes, unit = 0;
  for (; size >= 1024 && unit < UNITS.length - 1; unit++) size /= 1024;
  return `${size.toFixed(1)} ${UNITS[unit]}`;
}
