/** Rows that were made for columns whose types have changed since then. */
import { assert } from "../assert.ts";
import { convertValues } from "../types/conversion.ts";
import { layoutOf } from "../types/mod.ts";
import type { AppendBatch, AppendColumn, TableColumn, TableSchema } from "./contract.ts";
import { aligned } from "./rows.ts";
import { columnAfter, columnById } from "./schema.ts";

/** The batch with its values for former columns converted as those in the table were. */
export function ofPresentColumns(schema: TableSchema, batch: AppendBatch): AppendBatch {
  if (batch.columns.every(({ columnId }) => columnById(schema, columnId) !== undefined)) return batch;
  const columns = batch.columns.map((given) => {
    const after = columnById(schema, given.columnId) === undefined ? columnAfter(schema, given.columnId) : undefined;
    return after === undefined ? given : converted(given, batch.rowCount, after);
  });
  return { rowCount: batch.rowCount, columns };
}

/** A column may have been converted several times: then through each of its types. */
function converted(given: AppendColumn, rowCount: number, column: TableColumn): AppendColumn {
  const { former = [] } = column, at = former.findIndex(({ id }) => id === given.columnId);
  assert(at >= 0, "the column has had this id");
  let now = given;
  for (let k = at; k < former.length; k++) {
    const { id: columnId, type: to } = former[k + 1] ?? column;
    now = { columnId, ...convertedOnce(now, rowCount, former[k].type, to) };
  }
  return now;
}

function convertedOnce(
  { values, heap, symbols }: AppendColumn,
  rowCount: number,
  from: string,
  to: string,
): Omit<AppendColumn, "columnId"> {
  const isOfSymbols = layoutOf(from) === "symbol";
  const column = {
    values: aligned(values),
    rowCount,
    bytes: heap,
    symbols: isOfSymbols ? symbols ?? new Int32Array(0) : undefined,
  };
  const result = convertValues(from, to, column);
  return layoutOf(to) === "symbol" ? asSymbols(result.values, result.heap) : result;
}

/** Each text is a symbol: rows of the same text become one when they are added to the dictionary. */
function asSymbols({ buffer, byteOffset, byteLength }: Uint8Array, heap: Uint8Array | undefined) {
  const pairs = new Int32Array(buffer as ArrayBuffer, byteOffset, byteLength / 4);
  const codes = Int32Array.from({ length: pairs.length / 2 }, (_, row) => pairs[2 * row + 1] < 0 ? -1 : row);
  const symbols = pairs.map((value, k) => k % 2 === 1 && value < 0 ? 0 : value);
  return { values: new Uint8Array(codes.buffer), heap, symbols };
}
