/** The values of a column of lines before conversion. Reads them and creates the errors for invalid ones. */
import { LineError } from "../../../errors.ts";
import type { AppendColumn, TableColumn } from "../../../storage/contract.ts";
import { KIND, KIND_NAMES, type LineColumn, type LineTable } from "../columns.ts";

/** Values in the type of the table's column. */
export type Fitted = Omit<AppendColumn, "columnId">;

export type Fit = (source: Source) => Fitted;

export const NULL_LONG = -(2n ** 63n);

export class Source {
  readonly doubles: Float64Array;
  readonly longs: BigInt64Array;

  constructor(readonly column: LineColumn, private readonly lines: LineTable, private readonly target: TableColumn) {
    this.doubles = new Float64Array(column.slots.buffer, column.slots.byteOffset, column.slots.length / 2);
    this.longs = new BigInt64Array(column.slots.buffer, column.slots.byteOffset, column.slots.length / 2);
  }

  get rowCount(): number {
    return this.lines.rowCount;
  }

  /** True if all values have this kind. Rows without a value then already have its null. */
  isAll(kind: number): boolean {
    return this.column.kind === kind && !this.column.mixed;
  }

  /** Calls back for each row with a value. */
  forEach(take: (row: number, kind: number) => void): void {
    const { kinds } = this.column;
    for (let row = 0; row < kinds.length; row++) if (kinds[row] !== KIND.none) take(row, kinds[row]);
  }

  /** The bytes of a text or tag. */
  bytes(row: number): Uint8Array {
    const { column } = this;
    if (column.kinds[row] === KIND.tag) {
      const pair = 2 * column.codes[row];
      return column.symbolHeap.subarray(column.symbols[pair], column.symbols[pair] + column.symbols[pair + 1]);
    }
    return column.heap.subarray(column.slots[2 * row], column.slots[2 * row] + column.slots[2 * row + 1]);
  }

  text(row: number): string {
    return new TextDecoder().decode(this.bytes(row));
  }

  refuse(row: number, why?: string): LineError {
    const { name, type } = this.target;
    const what = KIND_NAMES[this.column.kinds[row]];
    return new LineError(this.lines.lines[row], why ?? `column ${name} has type ${type} and does not accept ${what}`);
  }
}

export const words = (values: Int32Array): Uint8Array =>
  new Uint8Array(values.buffer, values.byteOffset, values.byteLength);

export function isNull(source: Source, row: number): boolean {
  return source.longs[row] === NULL_LONG;
}

/** Text pairs of NULLs. */
export function nullPairs(rowCount: number): Int32Array {
  const pairs = new Int32Array(rowCount * 2);
  for (let row = 0; row < rowCount; row++) pairs[2 * row + 1] = -1;
  return pairs;
}
