/** The messages from the writer to the readers: changes of tables, as plain data. */
import type { AccessPublication } from "./access.ts";
import type { PartitionInfo, SegmentRecord, TableSchema } from "./contract.ts";
import type { Segment, Table } from "./table.ts";

/** A change of the segment list: replaces `count` segments from index `start` on. */
export interface Splice {
  start: number;
  count: number;
  segments: SegmentRecord[];
}

export interface TableChange {
  tableId: number;
  lsn: bigint;
  dropped?: true;
  /** Not opened since the start: the contents follow when the table is opened. */
  unread?: true;
  schema?: TableSchema;
  /** Paths of all data files, if there are new ones. */
  files?: string[];
  splice?: Splice;
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
export function changeOf(table: Table, published: readonly Segment[]): TableChange {
  const { segments, damage } = table;
  const change: TableChange = { tableId: table.schema.id, lsn: BigInt(table.newestLsn) };
  if (table.unread !== undefined) change.unread = true;
  if (damage !== undefined) {
    change.damage = { path: damage.path, message: damage.message.slice(damage.path.length + 2) };
  }
  if (table.schema !== table.publishedSchema) change.schema = table.schema;
  if (segments !== published) {
    const { start, count, added } = differenceOf(segments, published);
    change.splice = { start, count, segments: added.map((segment) => segment.record ??= recordOf(segment)) };
    change.files = table.data.list.map((file) => file.path);
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

/** Returns the difference of two lists: `count` segments of `before` from `start` on were replaced by `added`. */
export function differenceOf(
  segments: readonly Segment[],
  before: readonly Segment[],
): { start: number; count: number; added: readonly Segment[] } {
  let start = 0;
  const least = Math.min(segments.length, before.length);
  while (start < least && segments[start] === before[start]) start++;
  let tail = 0;
  while (tail < least - start && segments[segments.length - 1 - tail] === before[before.length - 1 - tail]) tail++;
  return { start, count: before.length - tail - start, added: segments.slice(start, segments.length - tail) };
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
