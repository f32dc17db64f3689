/** Row keys as strings, for tables with deduplication keys. Only rows with equal timestamps are compared by them. */
import { fillNullBytes, typeOf } from "../types/mod.ts";
import type { TableColumn, TableSchema } from "./contract.ts";
import { type RowColumn, type Rows, takeRows } from "./rows.ts";

export type KeyReader = (row: number) => string;

const nullKey: KeyReader = () => "null";

/** Reads values of a type at `address` of `bytes`. Text pairs point into `texts`. */
export function keyReader(tag: string, bytes: Uint8Array, address: number, texts: Uint8Array): KeyReader {
  const { layout, width, order } = typeOf(tag);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (layout === "text") {
    return (row) => {
      const length = view.getInt32(address + 8 * row + 4, true);
      if (length < 0) return "null";
      const from = view.getUint32(address + 8 * row, true);
      return `'${latin1(texts, from, from + length)}'`;
    };
  }
  if (order === "float") {
    return (row) => {
      const at = address + width * row;
      // -0 becomes 0. NaN and infinities are null.
      const value = (width === 4 ? view.getFloat32(at, true) : view.getFloat64(at, true)) + 0;
      return Number.isFinite(value) ? `${value}` : "null";
    };
  }
  const missing = missingKey(tag)(0);
  const nullBits = nullBitsOf(tag);
  return (row) => {
    const bits = bytes.subarray(address + width * row, address + width * (row + 1)).toHex();
    return bits === nullBits ? missing : bits;
  };
}

/** The bytes of a missing value. */
function nullBitsOf(tag: string): string {
  const bytes = new Uint8Array(typeOf(tag).width);
  fillNullBytes(bytes, tag);
  return bytes.toHex();
}

function latin1(bytes: Uint8Array, from: number, to: number): string {
  let text = "";
  for (let k = from; k < to; k++) text += String.fromCharCode(bytes[k]);
  return text;
}

/** The key of an omitted column. For types without null it is the key of false or 0. */
export function missingKey(tag: string): KeyReader {
  return typeOf(tag).nullable ? nullKey : () => nullBitsOf(tag);
}

export function addedKey(tag: string, column: RowColumn | undefined): KeyReader {
  return column === undefined ? missingKey(tag) : keyReader(tag, column.values, 0, column.heap ?? new Uint8Array(0));
}

/** Keeps the last row for each time and key, from rows in time order. */
export function lastOfSameKeys(schema: TableSchema, keys: readonly TableColumn[], rows: Rows): Rows {
  const { times, rowCount } = rows;
  const readers = keys.map(({ id, type }) => addedKey(type, rows.columns[id]));
  const kept = new Uint32Array(rowCount);
  let count = 0;
  for (let row = 0; row < rowCount;) {
    let end = row + 1;
    while (end < rowCount && times![2 * end] === times![2 * row] && times![2 * end + 1] === times![2 * row + 1]) end++;
    if (end === row + 1) kept[count++] = row;
    else {
      const last = new Map<string, number>();
      for (let k = row; k < end; k++) last.set(readers.map((read) => read(k)).join("|"), k);
      for (const k of [...last.values()].sort((a, b) => a - b)) kept[count++] = k;
    }
    row = end;
  }
  return count === rowCount ? rows : takeRows(schema, rows, kept.subarray(0, count));
}

/** The columns of the deduplication key but the timestamp. */
export function keyColumns(schema: TableSchema): TableColumn[] {
  const { columns, dedupKeys, timestampId } = schema;
  return columns.filter(({ id }) => dedupKeys.includes(id) && id !== timestampId);
}
