/** The storage size of columns in partitions, read from the words of a table's pages. */
import type { ColumnStorage, SegmentSource, TableColumn } from "./contract.ts";
import { rawBytes } from "./encoding/codecs.ts";
import { encodingNames } from "./encoding/encodings.ts";

interface Sums extends Omit<ColumnStorage, "partition" | "encodings"> {
  encodings: Set<string>;
}

/** `segments`: of a table, in order, with the chunks of `columns`. */
export function columnStorageOf(
  columns: readonly TableColumn[],
  segments: Iterable<SegmentSource>,
  nameOf: (partition: bigint) => string,
): ColumnStorage[] {
  const byPartition = new Map<bigint, Sums[]>();
  for (const { partition, rowCount, chunks } of segments) {
    let all = byPartition.get(partition);
    if (all === undefined) byPartition.set(partition, all = columns.map(emptySums));
    chunks.forEach((chunk, k) => {
      const sums = all[k];
      sums.rowCount += rowCount;
      if (chunk === undefined || chunk.file < 0) return;
      sums.storedRowCount += rowCount;
      const encodings = chunk.encodings ?? 0;
      sums.rawSizeBytes += rawBytes(chunk);
      sums.diskSizeBytes += chunk.sizeBytes;
      for (const name of encodings === 0 ? ["raw"] : encodingNames(encodings)) sums.encodings.add(name);
    });
  }
  return [...byPartition].flatMap(([partition, all]) =>
    all.map((sums) => ({ ...sums, partition: nameOf(partition), encodings: [...sums.encodings].sort() }))
  );
}

function emptySums(column: TableColumn): Sums {
  return { column, rowCount: 0, storedRowCount: 0, rawSizeBytes: 0, diskSizeBytes: 0, encodings: new Set() };
}
