/** The messages from the writer to the readers: changes of tables, as plain data. */
import type { AccessPublication } from "./access.ts";
import type { PartitionSums, TableSchema } from "./contract.ts";
import { addSums, sumsOf } from "./page-partitions.ts";
import { packRefs } from "./page-refs.ts";
import { type Segments, wholePart } from "./segments.ts";
import { difference } from "./splices.ts";
import type { Table } from "./table.ts";

export interface TableChange {
  tableId: number;
  lsn: bigint;
  dropped?: true;
  /** Set if the table has not been opened since the start. Its contents follow when it is opened. */
  unread?: true;
  schema?: TableSchema;
  /** Of the data files; with the first schema. */
  directory?: string;
  /** Splices of parts. `refs`: `packRefs` of the added ones. */
  parts?: { start: number; count: number; refs: Float64Array }[];
  /** All detached partitions, if one has changed. */
  detached?: PartitionSums[];
  /** All dictionaries, if one has changed. */
  dictionaries?: { columnId: number; entries: number; count: number; own?: true }[];
  /** Set if the table cannot be read. */
  damage?: { path: string; message: string };
}

export interface Publication {
  version: number;
  /** Of the last block of the log, up to which all changes are in this version. */
  lsn: number;
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
export function changeOf(table: Table, published: Segments): TableChange {
  const { segments, damage } = table;
  const change: TableChange = { tableId: table.schema.id, lsn: BigInt(table.newestLsn) };
  if (table.unread !== undefined) change.unread = true;
  if (damage !== undefined) {
    change.damage = { path: damage.path, message: damage.message.slice(damage.path.length + 2) };
  }
  if (table.schema !== table.publishedSchema) change.schema = table.schema;
  if (table.publishedSchema === undefined) change.directory = table.directory;
  if (segments !== published) {
    change.parts = difference(segments.parts, published.parts).map(({ start, count, added }) => (
      { start, count, refs: packRefs(added) }
    ));
  }
  if (table.detached !== table.publishedDetached) {
    change.detached = [...table.detached.values()].map(infoOf);
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

/** The sums of a detached partition. No page is read for it. */
function infoOf(segments: Segments): PartitionSums {
  const found: PartitionSums[] = [];
  for (const page of segments.pages()) {
    addSums(found, sumsOf(page.isLive ? page.partitions[0] : { ...wholePart(page), files: page.fileBytes }));
  }
  return found[0];
}
