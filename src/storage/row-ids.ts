/**
 * Row ids: the uid of a segment and the number of the row in it. An id stays valid while rows are only appended to its segment, or
 * change in others.
 */
import { LAYOUT_WIDTH, layoutOf } from "../types/mod.ts";
import { type AppendColumn, type ChangedBatch, ROW_BITS } from "./contract.ts";
import { joined } from "./joined.ts";
import { changedMeanwhile } from "./moves.ts";
import { gather } from "./rows.ts";
import { columnById } from "./schema.ts";
import type { Table } from "./table.ts";

const ROWS = 1 << ROW_BITS;

/**
 * The ordinals of rows in the table's current state, ascending, and the columns in the same order.
 * @throws {SqlError} 40001 if another statement has changed one of the rows.
 */
export function inTableOrder(
  table: Table,
  batches: readonly ChangedBatch[],
): { ordinals: Float64Array; columns: AppendColumn[] } {
  const { rowIds, columns } = joined(batches);
  const ordinals = ordinalsOf(table, rowIds);
  if (isAscending(ordinals)) return { ordinals, columns };
  const order = Uint32Array.from(ordinals, (_, k) => k).sort((a, b) => ordinals[a] - ordinals[b]);
  const widthOf = (columnId: number) => {
    const column = columnById(table.schema, columnId);
    return column === undefined ? 0 : LAYOUT_WIDTH[layoutOf(column.type)];
  };
  return {
    ordinals: Float64Array.from(order, (k) => ordinals[k]),
    columns: columns.map((column) => {
      const width = widthOf(column.columnId);
      const values = new Uint8Array(column.values.buffer, column.values.byteOffset, width * order.length).slice();
      return { ...column, values: gather(values, width, order) };
    }),
  };
}

function ordinalsOf(table: Table, rowIds: BigInt64Array): Float64Array {
  const halves = new Int32Array(rowIds.buffer, rowIds.byteOffset, 2 * rowIds.length);
  const uidAt = (k: number) => halves[2 * k + 1] * (2 ** 32 / ROWS) + (halves[2 * k] >>> ROW_BITS);
  const uids: number[] = [];
  for (let k = 0; k < rowIds.length; k++) {
    const uid = uidAt(k);
    if (uid !== uids.at(-1)) uids.push(uid);
  }
  const places = table.segments.placesOf([...new Set(uids)].sort((a, b) => a - b));
  const ordinals = new Float64Array(rowIds.length);
  for (let k = 0; k < rowIds.length; k++) {
    const place = places.get(uidAt(k)), row = halves[2 * k] & (ROWS - 1);
    if (place === undefined || row >= place.rowCount) {
      throw changedMeanwhile();
    }
    ordinals[k] = place.firstRow + row;
  }
  return ordinals;
}

function isAscending(ordinals: Float64Array): boolean {
  for (let k = 1; k < ordinals.length; k++) if (ordinals[k] <= ordinals[k - 1]) return false;
  return true;
}
