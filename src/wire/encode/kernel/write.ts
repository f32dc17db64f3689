/**
 * The row kernel: functions that write rows, value after value, as a program says. They stop at a value that they cannot write, and when their
 * output memory is full. JavaScript then writes the value, or empties the memory, and calls again for what is left.
 */
import { type Code, type Label, Module, sharedMemory } from "../../../wasm/assembler.ts";
import { joinedBytes } from "../../../bytes.ts";
import { shareBytes, SHARED_WORD, sharedBytes, type SharedHeap } from "../../../storage/mod.ts";
import { INSTANT_TABLE_BYTES, instantFunctions, writeInstantTables } from "./instants.ts";
import {
  NOT_WRITTEN,
  NUMBER_TABLE_BYTES,
  numberFunctions,
  SLACK_BYTES,
  writeNumberTables,
} from "../../../wasm/number-texts.ts";
import { type Functions, type Operation, OPERATIONS, type Scope } from "./operations.ts";
import { CHARACTERS_MAX, COLUMN, COLUMN_WORDS, ROW, ROW_WORDS, STOP, type TableViews } from "./program.ts";
import { TEXT_TABLE_BYTES, textFunctions, writeTextTables } from "./texts.ts";

/** Where the tables are, at multiples of 8. */
const NUMBERS = 0, INSTANTS = NUMBERS + NUMBER_TABLE_BYTES, TEXTS = INSTANTS + INSTANT_TABLE_BYTES;
/** The first place behind the tables. */
export const TABLES_END = TEXTS + TEXT_TABLE_BYTES;

/** Longest value that is not a text: a UUID with its size or its delimiters, in the first place of a row. */
const VALUE_BYTES_MAX = 36 + 2 * CHARACTERS_MAX + 11;
/** The output memory ends so far behind `limit`. */
export const MARGIN_BYTES = VALUE_BYTES_MAX + SLACK_BYTES;

const LETTER_D = 0x44;
const COLUMN_BYTES = 4 * COLUMN_WORDS;

/**
 * Writes rows from `row` to `to` - 1 at `at`, the first one from `column` on. Returns the end, and sets the words of the program that say
 * where and why it has stopped. `limit`: `MARGIN_BYTES` before the end of the output memory.
 */
export type WriteRows = (
  program: number,
  row: number,
  column: number,
  to: number,
  at: number,
  limit: number,
) => number;

export interface RowFunctions {
  /** Values between delimiters. */
  writeDelimited: WriteRows;
  /** PostgreSQL's DataRows: values behind their sizes. */
  writeSized: WriteRows;
}

/** What a kernel is made of: its tables, then its module. Assembling it takes 6 ms in a new thread. */
function kernelImage(heap: WebAssembly.Memory): Uint8Array {
  const tables = new ArrayBuffer(TABLES_END);
  const views: TableViews = { u8: new Uint8Array(tables), i64: new BigInt64Array(tables) };
  writeNumberTables(views, NUMBERS);
  writeInstantTables(views, INSTANTS);
  writeTextTables(views, TEXTS);
  return joinedBytes([views.u8, rowModule(heap)]);
}

/** Assembles the kernel for all threads of the process. */
export function shareRowKernel(heap: SharedHeap): void {
  shareBytes(heap, SHARED_WORD.rowKernel, kernelImage(heap.memory));
}

/** `own`: the kernel's own memory, of at least a page. */
export function rowFunctions(heap: WebAssembly.Memory, own: WebAssembly.Memory): RowFunctions {
  const image = sharedBytes(heap, SHARED_WORD.rowKernel) ?? kernelImage(heap);
  new Uint8Array(own.buffer).set(image.subarray(0, TABLES_END));
  const module = new WebAssembly.Module(image.slice(TABLES_END) as Uint8Array<ArrayBuffer>);
  return new WebAssembly.Instance(module, { env: { own, heap } }).exports as unknown as RowFunctions;
}

function rowModule(heap: WebAssembly.Memory): Uint8Array<ArrayBuffer> {
  const module = new Module([{ name: "own" }, sharedMemory(heap, "heap")]);
  const functions: Functions = {
    ...numberFunctions(module, NUMBERS),
    ...instantFunctions(module, INSTANTS),
    ...textFunctions(module, TEXTS),
    swapped: swappedFunction(module),
  };
  new RowFunctionWriter(module, "writeDelimited", functions).write();
  new RowFunctionWriter(module, "writeSized", functions).write();
  return module.finish();
}

function swappedFunction(module: Module): number {
  const { code, index } = module.function(["i32"], ["i32"]);
  code.get(0).i32(8).op("i32.rotl").i32(0x00ff00ff).op("i32.and");
  code.get(0).i32(8).op("i32.rotr").i32(0xff00ff00 | 0).op("i32.and").op("i32.or");
  return index;
}

/** Emits one of the two functions. */
class RowFunctionWriter {
  private readonly code: Code;
  // Parameters, then other locals.
  private readonly program = 0;
  private readonly row = 1;
  private readonly column = 2;
  private readonly to = 3;
  private readonly at = 4;
  private readonly limit = 5;
  private readonly columns: number;
  private readonly columnsEnd: number;
  private readonly rowStart: number;
  private readonly valueStart: number;
  private readonly valueEnd: number;
  private readonly address: number;
  private readonly i32: number;
  private readonly i64: number;
  private readonly stop: number;
  private readonly isSized: boolean;

  constructor(module: Module, name: keyof RowFunctions, private readonly functions: Functions) {
    const { code } = module.function(["i32", "i32", "i32", "i32", "i32", "i32"], ["i32"], name);
    const local = () => code.local("i32");
    [this.columns, this.columnsEnd, this.rowStart, this.valueStart, this.valueEnd] = Array.from({ length: 5 }, local);
    [this.address, this.i32, this.stop] = Array.from({ length: 3 }, local);
    this.i64 = code.local("i64");
    this.code = code;
    this.isSized = name === "writeSized";
  }

  write(): void {
    const { code, program, row, column, columns, columnsEnd, rowStart, at, stop } = this;
    code.get(program).i32(4 * ROW_WORDS).op("i32.add").tee(columns);
    this.word(program, ROW.columnCount).i32(COLUMN_BYTES).op("i32.mul").op("i32.add").set(columnsEnd);
    // From here on, the column is where its words are.
    code.get(column).i32(COLUMN_BYTES).op("i32.mul").get(columns).op("i32.add").set(column);
    code.block((ends) =>
      code.loop((nextRow) => {
        code.get(column).get(columns).op("i32.eq").if(() => this.beginRow(ends));
        code.loop((nextColumn) =>
          code.get(column).get(columnsEnd).op("i32.lt_u").if(() => this.writeValue(nextColumn, ends))
        );
        code.get(columns).set(column);
        code.get(row).i32(1).op("i32.add").set(row);
        if (this.isSized) {
          code.get(rowStart).op("i32.eqz").if(() => this.stopWith(STOP.rowEnd, ends));
          this.putSize(rowStart, 1, 1);
        }
        code.br(nextRow);
      })
    );
    const setWord = (index: number, value: () => Code) => {
      code.get(program);
      value().memory("i32.store", 4 * index);
    };
    setWord(ROW.row, () => code.get(row));
    setWord(ROW.column, () => code.get(column).get(columns).op("i32.sub").i32(COLUMN_BYTES).op("i32.div_u"));
    setWord(ROW.start, () => code.get(rowStart));
    setWord(ROW.stop, () => code.get(stop));
    code.get(at);
  }

  private word(base: number, index: number): Code {
    return this.code.get(base).memory("i32.load", 4 * index);
  }

  private stopWith(reason: number, ends: Label): void {
    this.code.i32(reason).set(this.stop).br(ends);
  }

  private stopIfFull(ends: Label): void {
    this.code.get(this.at).get(this.limit).op("i32.gt_u").if(() => this.stopWith(STOP.full, ends));
  }

  /** Writes characters of the column. */
  private put(characters: number, count: number): void {
    const { code, at, column } = this;
    code.get(at).get(column).memory("i64.load", 4 * characters).memory("i64.store");
    code.get(at);
    this.word(column, count).op("i32.add").set(at);
  }

  /** Writes the size of what is from `skipped` bytes behind `from` on, at `offset` from it. */
  private putSize(from: number, skipped: number, offset: number): void {
    const { code, at, functions } = this;
    code.get(from).get(at).get(from).op("i32.sub").i32(skipped).op("i32.sub").call(functions.swapped);
    code.memory("i32.store", offset);
  }

  private beginRow(ends: Label): void {
    const { code, program, row, to, at } = this;
    code.get(row).get(to).op("i32.eq").if(() => this.stopWith(STOP.end, ends));
    this.stopIfFull(ends);
    code.get(at).set(this.rowStart);
    if (!this.isSized) return;
    // DataRow: `D`, int32 size, int16 number of values.
    code.get(at).i32(LETTER_D).memory("i32.store8").get(at);
    this.word(program, ROW.columnCount).call(this.functions.swapped).i32(16).op("i32.shr_u").memory("i32.store16", 5);
    code.get(at).i32(7).op("i32.add").set(at);
  }

  private writeValue(nextColumn: Label, ends: Label): void {
    const { code, at, valueStart, valueEnd, isSized } = this;
    code.get(at).set(valueStart);
    code.block((stops) => {
      code.block((missing) => {
        if (isSized) code.get(at).i32(4).op("i32.add").set(at);
        else this.put(COLUMN.before, COLUMN.beforeCount);
        this.leaveValueEnd(missing, stops);
        code.tee(valueEnd).i32(NOT_WRITTEN).op("i32.eq").brIf(stops);
        code.get(valueEnd).set(at);
        if (isSized) this.putSize(valueStart, 4, 0);
        else this.put(COLUMN.after, COLUMN.afterCount);
        this.advance(nextColumn, ends);
      });
      code.get(valueStart).set(at);
      if (isSized) code.get(at).i32(-1).memory("i32.store").get(at).i32(4).op("i32.add").set(at);
      else this.put(COLUMN.missing, COLUMN.missingCount);
      this.advance(nextColumn, ends);
    });
    code.get(valueStart).set(at);
    this.stopWith(STOP.value, ends);
  }

  private advance(nextColumn: Label, ends: Label): void {
    this.code.get(this.column).i32(COLUMN_BYTES).op("i32.add").set(this.column);
    this.stopIfFull(ends);
    this.code.br(nextColumn);
  }

  /** Leaves the end of the column's value of the row on the stack, see `Operation`. */
  private leaveValueEnd(missing: Label, stops: Label): void {
    const { code, program, limit, at, column, address, i32, i64, functions, valueEnd } = this;
    const scope: Scope = { code, program, limit, at, column, address, i32, i64, functions, missing, stops };
    const operations: Operation[] = Object.values(OPERATIONS);
    code.block((done) => {
      const nest = (k: number, labels: Label[]) => {
        if (k < 0) {
          this.word(column, COLUMN.operation).brTable(labels, labels[0]!);
          return;
        }
        code.block((label) => nest(k - 1, [label, ...labels]));
        const { width, write } = operations[k]!;
        this.word(column, COLUMN.base).get(this.row).i32(width).op("i32.mul").op("i32.add").set(address);
        write(scope);
        code.set(valueEnd).br(done);
      };
      nest(operations.length - 1, []);
    });
    code.get(valueEnd);
  }
}
