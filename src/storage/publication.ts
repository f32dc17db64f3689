/** The messages from the writer to the readers: changes of tables, as plain data. */
import type { AccessPublication } from "./access.ts";
import type { PartitionInfo, SegmentRecord, TableSchema } from "./contract.ts";
import type { Segments, SplicedSegments } from "./segments.ts";
import type { Segment, Table } from "./table.ts";

export interface TableChange {
  tableId: number;
  lsn: bigint;
  dropped?: true;
  /** Set if the table has not been opened since the start. Its contents follow when it is opened. */
  unread?: true;
  schema?: TableSchema;
  /** Paths of all data files, if there are new ones. */
  files?: string[];
  splices?: SplicedSegments<SegmentRecord>[];
  /** All detached partitions, if one has changed. */
  detached?: Omit<PartitionInfo, "name">[];
  /** All dictionaries, if one has changed. */
  dictionaries?: { columnId: number; entries: number; count: number; own?: true }[];
  /** Set if the table cannot be read. */
  damage?: { path: string; message: string };
}

export interface Publication {
  version: number;
  tables: TableChange[];
  branch?: BranchPublication;
  /** Records of access control that have changed. */
  access?: AccessPublication;
}

/** Tables as one open transaction has changed them. Only its own session sees them. */
export interface BranchPublication {
  transactionId: number;
  /** The transaction is over, and its tables must not be read any more. */
  ended?: true;
  tables: TableChange[];
}

/** Returns what has changed since the table's segments were `published`. */
export function changeOf(table: Table, published: Segments<Segment>): TableChange {
  const { segments, damage } = table;
  const change: TableChange = { tableId: table.schema.id, lsn: BigInt(table.newestLsn) };
  if (table.unread !== undefined) change.unread = true;
  if (damage !== undefined) {
    change.damage = { path: damage.path, message: damage.message.slice(damage.path.length + 2) };
  }
  if (table.schema !== table.publishedSchema) change.schema = table.schema;
  if (segments !== published) {
    change.splices = segments.differenceFrom(published).map(({ start, count, segments }) => (
      { start, count, segments: segments.map((segment) => segment.record ??= recordOf(segment)) }
    ));
  }
  const { list } = table.data;
  if (list.length !== table.publishedFiles || table.publishedSchema === undefined) {
    change.files = list.map((file) => file.path);
  }
  if (table.detached !== table.publishedDetached) {
    change.detached = [...table.detached].map(([start, segments]) => infoOf(start, segments.map(recordOf)));
  }
  if (table.dictionaries.size > 0) {
    change.dictionaries = [...table.dictionaries].map(([columnId, { entries, count }]) => ({
      columnId,
      entries: entries.address,
      count,
    }));
  }
  return change;
}

/** Describes a partition. */
export function infoOf(start: bigint, segments: readonly SegmentRecord[]): Omit<PartitionInfo, "name"> {
  const { timestampMin } = segments[0], { timestampMax } = segments[segments.length - 1];
  let rowCount = 0, diskSizeBytes = 0;
  for (const segment of segments) {
    rowCount += segment.rowCount;
    for (const chunk of segment.chunks) {
      if (chunk !== undefined) diskSizeBytes += chunk.sizeBytes || chunk.valueBytes;
    }
  }
  return { start, rowCount, timestampMin, timestampMax, diskSizeBytes };
}

function recordOf({ partition, rowCount, timestampMin, timestampMax, chunks }: Segment): SegmentRecord {
  return { partition, rowCount, timestampMin, timestampMax, chunks: chunks.map((chunk) => chunk?.plain) };
}
