/**
 * Writes rows as JSON, CSV or PostgreSQL's DataRows: the row kernel writes the common values, and the columns' writers those that it leaves.
 */
import { assert } from "../../assert.ts";
import type { Batch } from "../../engine/contract.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import { PAGE_BYTES } from "../../wasm/assembler.ts";
import type { Escape, ValueWriter } from "./forms.ts";
import { type OperationName, OPERATIONS } from "./kernel/operations.ts";
import { CHARACTERS_MAX, COLUMN, COLUMN_WORDS, ROW, ROW_WORDS, STOP } from "./kernel/program.ts";
import { MARGIN_BYTES, type RowFunctions, rowFunctions, TABLES_END } from "./kernel/write.ts";
import { asciiBytes, type ByteSink } from "./sink.ts";

/** One result column while it is written. */
export interface Field {
  /** Index in the batch. */
  index: number;
  operation: OperationName;
  /** Writes the values that the kernel leaves. */
  writer: ValueWriter | undefined;
  /** The rest is for text with delimiters: characters in front of each value. */
  before: string;
  quoted: boolean;
  /** Instead of a missing value. */
  nullText: string;
}

/** What is around the values. */
export interface RowForm {
  isPg: boolean;
  /** Between rows, and behind each row. */
  between: string;
  end: string;
  escape: Escape;
}

/** Of a kernel's memory: the tables, what it writes until that is copied, and the program. */
const OUTPUT = TABLES_END, OUTPUT_END = PAGE_BYTES, LIMIT = OUTPUT_END - MARGIN_BYTES, PROGRAM = OUTPUT_END;

/** A thread's kernel and its memory, which is made for the first rows and kept. */
class RowKernel {
  private readonly memory = new WebAssembly.Memory({ initial: PROGRAM / PAGE_BYTES + 1 });
  readonly functions: RowFunctions;
  bytes: Uint8Array<ArrayBuffer>;
  program: Int32Array;

  constructor(heap: WebAssembly.Memory) {
    this.functions = rowFunctions(heap, this.memory);
    [this.bytes, this.program] = this.views();
  }

  private views(): [Uint8Array<ArrayBuffer>, Int32Array] {
    const buffer = this.memory.buffer as ArrayBuffer;
    return [new Uint8Array(buffer), new Int32Array(buffer, PROGRAM)];
  }

  load(words: Int32Array): void {
    const missing = words.length - this.program.length;
    if (missing > 0) {
      this.memory.grow(Math.ceil(4 * missing / PAGE_BYTES));
      [this.bytes, this.program] = this.views();
    }
    this.program.set(words);
  }
}

const kernels = new WeakMap<WebAssembly.Memory, RowKernel>();

function kernelOf({ memory }: SharedHeap): RowKernel {
  let known = kernels.get(memory);
  if (known === undefined) kernels.set(memory, known = new RowKernel(memory));
  return known;
}

/** A field's characters. */
interface Surroundings {
  before: Uint8Array;
  after: Uint8Array;
  missing: Uint8Array;
}

const OPERATION_NAMES = Object.keys(OPERATIONS);

export class RowWriter {
  private readonly surroundings: Surroundings[];
  private readonly words: Int32Array;
  private kernel: RowKernel | undefined;

  constructor(
    private readonly fields: readonly Field[],
    private readonly form: RowForm,
    private readonly heap: SharedHeap,
    private readonly sink: ByteSink,
    private readonly poll: () => void,
  ) {
    const { between, end } = form, last = fields.length - 1;
    this.surroundings = fields.map(({ before, quoted, nullText }, k) => {
      const quote = quoted ? '"' : "", first = (k === 0 ? between : "") + before, rest = k === last ? end : "";
      return {
        before: asciiBytes(first + quote),
        after: asciiBytes(quote + rest),
        missing: asciiBytes(first + nullText + rest),
      };
    });
    this.words = new Int32Array(ROW_WORDS + COLUMN_WORDS * fields.length);
    this.words[ROW.columnCount] = fields.length;
    this.words[ROW.escapes] = Number(form.escape !== "none");
    const bytes = new Uint8Array(this.words.buffer);
    fields.forEach(({ operation }, k) => {
      const at = ROW_WORDS + k * COLUMN_WORDS, { before, after, missing } = this.surroundings[k]!;
      this.words[at + COLUMN.operation] = OPERATION_NAMES.indexOf(operation);
      if (operation === "other") return;
      assert(Math.max(before.length, after.length, missing.length) <= CHARACTERS_MAX);
      this.words[at + COLUMN.beforeCount] = before.length;
      this.words[at + COLUMN.afterCount] = after.length;
      this.words[at + COLUMN.missingCount] = missing.length;
      bytes.set(before, 4 * (at + COLUMN.before));
      bytes.set(after, 4 * (at + COLUMN.after));
      bytes.set(missing, 4 * (at + COLUMN.missing));
    });
  }

  /** Writes rows from `from` to `to` - 1 at the start of the sink, and returns the end. */
  write(batch: Batch, from: number, to: number, isFirst: boolean): number {
    if (from === to) return 0;
    const { sink, form: { isPg, between } } = this, kernel = this.kernel ??= kernelOf(this.heap);
    this.bind(batch, kernel);
    const { bytes, program, functions } = kernel, write = isPg ? functions.writeSized : functions.writeDelimited;
    // Nothing is in front of the first row of all.
    let row = from, column = 0, at = isFirst ? -between.length : 0, rowStart = 0;
    for (;;) {
      const end = write(PROGRAM, row, column, to, OUTPUT, LIMIT),
        start = program[ROW.start]!,
        stop = program[ROW.stop]!;
      row = program[ROW.row]!;
      column = program[ROW.column]!;
      if (start !== 0) rowStart = at + start - OUTPUT;
      at = this.append(bytes.subarray(OUTPUT, end), at);
      if (stop === STOP.end) return at;
      if (stop === STOP.full) this.poll();
      else if (stop === STOP.rowEnd) sink.view.setInt32(rowStart + 1, at - rowStart - 1);
      else at = isPg ? this.putSized(batch, column++, row, at) : this.putDelimited(batch, column++, row, at);
    }
  }

  /** Bytes in front of the start of the sink are left out. */
  private append(bytes: Uint8Array, at: number): number {
    const end = at + bytes.length;
    this.sink.ensure(end).set(at < 0 ? bytes.subarray(-at) : bytes, Math.max(0, at));
    return end;
  }

  /** Loads the program for this batch. */
  private bind(batch: Batch, kernel: RowKernel): void {
    const { fields, words } = this;
    for (let k = 0, at = ROW_WORDS; k < fields.length; k++, at += COLUMN_WORDS) {
      const vector = batch.columns[fields[k]!.index]!;
      words[at + COLUMN.base] = vector.address;
      words[at + COLUMN.entries] = vector.dictionary?.entries ?? 0;
    }
    kernel.load(words);
  }

  /** Writes a value that the kernel has left. */
  private putDelimited(batch: Batch, k: number, row: number, at: number): number {
    const { sink } = this, { before, after, missing } = this.surroundings[k]!;
    const start = at + before.length;
    sink.ensure(start);
    const end = this.writerOf(k, batch).write(row, start);
    if (end < 0) return this.append(missing, at);
    this.append(before, at);
    return this.append(after, end);
  }

  /** The value after its size, which is -1 for NULL. */
  private putSized(batch: Batch, k: number, row: number, at: number): number {
    const { sink } = this;
    sink.ensure(at + 4);
    const end = this.writerOf(k, batch).write(row, at + 4);
    sink.view.setInt32(at, end < 0 ? -1 : end - at - 4);
    return end < 0 ? at + 4 : end;
  }

  private writerOf(k: number, batch: Batch): ValueWriter {
    const { writer, index, operation } = this.fields[k]!;
    assert(writer !== undefined, `the kernel writes every value of ${operation}`);
    writer.bind(batch.columns[index]!);
    return writer;
  }
}
