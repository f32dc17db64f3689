/** Row keys as strings, for tables with deduplication keys. Only rows with equal timestamps get here. */
import { LAYOUT_WIDTH, layoutOf, typeOf } from "../types/mod.ts";
import type { TableColumn, TableSchema } from "./contract.ts";
import { type RowColumn, type Rows, takeRows } from "./rows.ts";

export type KeyReader = (row: number) => string;

const nullKey: KeyReader = () => "null";

/** Reads values of a type at `address` of `bytes`. Text pairs point into `texts`, relative to `base`. */
export function keyReader(tag: string, bytes: Uint8Array, address: number, texts: Uint8Array, base: number): KeyReader {
  const type = typeOf(tag);
  const layout = layoutOf(tag), width = LAYOUT_WIDTH[layout];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  switch (layout) {
    case "text":
      return (row) => {
        const length = view.getInt32(address + 8 * row + 4, true);
        if (length < 0) return "null";
        const from = base + view.getUint32(address + 8 * row, true);
        return `'${latin1(texts, from, from + length)}'`;
      };
    case "f32":
    case "f64":
      return (row) => {
        // -0 becomes 0, and all NaNs are one.
        const value =
          (layout === "f32" ? view.getFloat32(address + 4 * row, true) : view.getFloat64(address + 8 * row, true)) + 0;
        return value !== value ? "null" : `${value}`;
      };
    case "i128":
    case "i256":
      return (row) => {
        const at = address + width * row;
        const words = Array.from({ length: width / 8 }, (_, k) => view.getBigInt64(at + 8 * k, true));
        return words.every((word) => word === type.nullValue) ? "null" : words.join(":");
      };
    case "i64":
      return (row) => {
        const value = view.getBigInt64(address + 8 * row, true);
        return value === type.nullValue ? "null" : `${value}`;
      };
    default:
      return (row) => {
        const at = address + width * row;
        const value = width === 1 ? view.getInt8(at) : width === 2 ? view.getInt16(at, true) : view.getInt32(at, true);
        return type.nullable && value === type.nullValue ? "null" : `${value}`;
      };
  }
}

function latin1(bytes: Uint8Array, from: number, to: number): string {
  let text = "";
  for (let k = from; k < to; k++) text += String.fromCharCode(bytes[k]);
  return text;
}

/** The key of a column that is not given. BOOLEAN, BYTE and SHORT have no null, so it is 0 for them. */
export function missingKey(tag: string): KeyReader {
  return typeOf(tag).nullable ? nullKey : () => "0";
}

export function addedKey(tag: string, column: RowColumn | undefined): KeyReader {
  return column === undefined ? missingKey(tag) : keyReader(tag, column.values, 0, column.heap ?? new Uint8Array(0), 0);
}

/** Of rows in time order, keeps the last one of each time and key. */
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
