/**
 * Kernels that write the values of a column as texts. They write to a memory of their own, because functions of numbers write behind the ends of
 * texts, and then copy all texts at once. JavaScript takes 50 to 150 ns a number.
 */
import { NULL_I32, NULL_I64 } from "../../types/mod.ts";
import { type Code, Module, PAGE_BYTES, sharedMemory } from "../../wasm/assembler.ts";
import {
  NOT_WRITTEN,
  NUMBER_TABLE_BYTES,
  type NumberFunctions,
  numberFunctions,
  SLACK_BYTES,
  writeNumberTables,
} from "../../wasm/number-texts.ts";
import { eachRow, KERNEL_ROWS_MIN, storeNone } from "./column-kernels.ts";
import type { BatchColumn, BatchOut, FunctionContext } from "./entry.ts";

/** Arrays with this many dimensions have a kernel. */
const ARRAY_DIMENSIONS = [1, 2] as const;
const NUMBERS = { BYTE: "i32.load8_s", SHORT: "i32.load16_s", INT: "i32.load", LONG: "i64.load" };
const FRACTIONS = { FLOAT: "f32.load", DOUBLE: "f64.load" };
const WIDTH = { BYTE: 1, SHORT: 2, INT: 4, LONG: 8, FLOAT: 4, DOUBLE: 8 };
const TYPES = ["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"] as const;
type NumberType = typeof TYPES[number];

/** (column, from, to, out): writes pairs with addresses in the own memory. Returns `to`, or the first row for which there is no space, or no text. */
type TextKernel = (column: number, from: number, to: number, out: number) => number;

interface Kernels {
  /** By type. */
  write: Map<string, TextKernel>;
  /** Copies the texts of the rows to the heap, and sets their addresses. */
  place(pairs: number, from: number, to: number, target: number): void;
  words: Int32Array;
}

// The own memory: the tables, the end of the texts, the texts.
const END = NUMBER_TABLE_BYTES, TEXTS = END + 8;
const OWN_PAGES = 2;
/** Of an array: its text has at most 4 KiB. */
const ARRAY_BYTES_MAX = 1_024;
const ARRAY_TEXT_BYTES_MAX = 4_096;
const NUMBER_BYTES_MAX = 26;
/** Index of the heap among the memories of the module. */
const HEAP = 1;
const COMMA = 0x2c, OPEN = 0x5b, CLOSE = 0x5d, NULL_TEXT = 0x6c6c756e;

const known = new WeakMap<WebAssembly.Memory, Kernels>();

function kernelsOf(heap: WebAssembly.Memory): Kernels {
  let kernels = known.get(heap);
  if (kernels === undefined) {
    const own = new WebAssembly.Memory({ initial: OWN_PAGES, maximum: OWN_PAGES });
    writeNumberTables({ i64: new BigInt64Array(own.buffer) }, 0);
    const module = new Module([{ name: "own" }, sharedMemory(heap, "heap")]), functions = numberFunctions(module, 0);
    for (const type of TYPES) addNumber(module, type, functions);
    for (const dimensions of ARRAY_DIMENSIONS) addArray(module, dimensions, functions);
    addPlace(module);
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module.finish()), { env: { own, heap } });
    const { place, ...write } = exports as unknown as Record<string, TextKernel> & Pick<Kernels, "place">;
    kernels = { write: new Map(Object.entries(write)), place, words: new Int32Array(own.buffer) };
    known.set(heap, kernels);
  }
  return kernels;
}

/** Writes the texts of a column. `other` writes those that no kernel can, and all of few rows. */
export function writeTexts(
  { address, type }: BatchColumn,
  out: Pick<BatchOut, "address" | "reserve">,
  rowCount: number,
  { heap, poll }: FunctionContext,
  other: (row: number) => void,
): void {
  const isWorth = rowCount >= KERNEL_ROWS_MIN || known.has(heap.memory);
  const kernels = isWorth ? kernelsOf(heap.memory) : undefined, kernel = kernels?.write.get(type);
  if (kernels === undefined || kernel === undefined) {
    for (let row = 0; row < rowCount; row++) {
      other(row);
      if ((row & 4095) === 4095) poll();
    }
    return;
  }
  const { place, words } = kernels;
  for (let row = 0; row < rowCount;) {
    const end = kernel(address, row, rowCount, out.address);
    if (end > row) place(out.address, row, end, out.reserve(words[END / 4] - TEXTS));
    else other(row);
    row = Math.max(end, row + 1);
    poll();
  }
}

/** Emits the loop over the rows. `at`: the end of the texts so far. `stop`: leaves the kernel at this row. */
function kernel(
  module: Module,
  name: string,
  width: number,
  limit: number,
  body: (code: Code, locals: { column: number; out: number; at: number; end: number }, stop: () => void) => void,
): void {
  const { code } = module.function(["i32", "i32", "i32", "i32"], ["i32"], name);
  const [column, row, to, out] = [0, 1, 2, 3] as const, at = code.local("i32"), end = code.local("i32");
  const leave = () => code.i32(END).get(at).memory("i32.store").get(row);
  const stop = () => leave().return();
  code.i32(TEXTS).set(at);
  eachRow(code, [{ base: column, width }, { base: out, width: 8 }], row, to, () => {
    code.get(at).i32(OWN_PAGES * PAGE_BYTES - limit - SLACK_BYTES).op("i32.gt_u").if(stop);
    body(code, { column, out, at, end }, stop);
  });
  leave();
}

/** Stores the pair of a text from `at` to `end`, or of NULL. */
function storePair(code: Code, out: number, at: number, end: number): void {
  code.get(out).get(at).memory("i32.store", 0, HEAP).get(out).get(end).get(at).op("i32.sub").memory(
    "i32.store",
    4,
    HEAP,
  );
  code.get(end).set(at);
}

function addNumber(module: Module, type: NumberType, functions: NumberFunctions): void {
  kernel(module, type, WIDTH[type], NUMBER_BYTES_MAX, (code, { column, out, at, end }, stop) => {
    const isFraction = type === "FLOAT" || type === "DOUBLE";
    const form = type === "FLOAT" ? "f32" : type === "DOUBLE" ? "f64" : type === "LONG" ? "i64" : "i32";
    const value = code.local(form);
    const write = () => {
      code.get(value);
      if (form === "i32") code.op("i64.extend_i32_s");
      code.get(at).call(functions[type === "FLOAT" ? "float" : type === "DOUBLE" ? "double" : "long"]).tee(end);
      code.i32(NOT_WRITTEN).op("i32.eq").if(stop);
      storePair(code, out, at, end);
    };
    code.get(column).memory(isFraction ? FRACTIONS[type] : NUMBERS[type], 0, HEAP).set(value);
    if (type === "BYTE" || type === "SHORT") return write();
    if (isFraction) {
      code.get(value).get(value).op(`${form}.sub`);
      if (form === "f32") code.f32(0);
      else code.f64(0);
      code.op(`${form}.ne`);
    } else if (form === "i64") code.get(value).i64(NULL_I64).op("i64.eq");
    else code.get(value).i32(NULL_I32).op("i32.eq");
    code.if(() => storeNone(code, out, HEAP), write);
  });
}

/** `[[1.0,null]]`. */
function addArray(module: Module, dimensions: typeof ARRAY_DIMENSIONS[number], { double }: NumberFunctions): void {
  const name = `DOUBLE${"[]".repeat(dimensions)}`;
  kernel(module, name, 8, ARRAY_TEXT_BYTES_MAX, (code, { column, out, at, end }, stop) => {
    const array = code.local("i32"), last = code.local("i32"), value = code.local("f64");
    const rowBytes = code.local("i32"), rowEnd = code.local("i32");
    const put = (byte: number) => code.get(end).i32(byte).memory("i32.store8").get(end).i32(1).op("i32.add").set(end);
    const isFirstOf = (start: number) => code.get(array).get(start).op("i32.eq");
    const head = 4 + 4 * dimensions;
    code.get(column).memory("i32.load", 4, HEAP).tee(last).i32(ARRAY_BYTES_MAX).op("i32.gt_s").if(stop);
    code.get(last).i32(0).op("i32.lt_s").if(() => storeNone(code, out, HEAP), () => {
      code.get(column).memory("i32.load", 0, HEAP).tee(array).get(last).op("i32.add").set(last);
      code.get(array).memory("i32.load", 0, HEAP).i32(dimensions).op("i32.ne").if(stop);
      code.get(array).memory("i32.load", 4 * dimensions, HEAP).i32(3).op("i32.shl").set(rowBytes);
      code.get(array).i32(head).op("i32.add").tee(array).get(rowBytes).op("i32.add").set(rowEnd);
      code.get(at).set(end);
      put(OPEN);
      code.block((done) => {
        code.get(array).get(last).op("i32.eq").brIf(done);
        if (dimensions > 1) put(OPEN);
        code.loop((again) => {
          code.get(array).memory("f64.load", 0, HEAP).tee(value).get(value).op("f64.sub").f64(0).op("f64.ne").if(() => {
            code.get(end).i32(NULL_TEXT).memory("i32.store").get(end).i32(4).op("i32.add").set(end);
          }, () => code.get(value).get(end).call(double).tee(end).i32(NOT_WRITTEN).op("i32.eq").if(stop));
          code.get(array).i32(8).op("i32.add").set(array);
          if (dimensions > 1) {
            isFirstOf(rowEnd).if(() => {
              put(CLOSE);
              code.get(array).get(last).op("i32.eq").brIf(done);
              put(COMMA);
              put(OPEN);
              code.get(rowEnd).get(rowBytes).op("i32.add").set(rowEnd).br(again);
            });
          } else code.get(array).get(last).op("i32.eq").brIf(done);
          put(COMMA);
          code.br(again);
        });
      });
      put(CLOSE);
      storePair(code, out, at, end);
    });
  });
}

function addPlace(module: Module): void {
  const { code } = module.function(["i32", "i32", "i32", "i32"], [], "place");
  const [pairs, row, to, target] = [0, 1, 2, 3] as const, shift = code.local("i32");
  const at = code.local("i32"), end = code.local("i32");
  code.get(target).i32(TEXTS).op("i32.sub").set(shift);
  code.i32(TEXTS).set(at).i32(END).memory("i32.load").set(end);
  const copy = (width: number, type: string) =>
    code.block((done) =>
      code.loop((again) => {
        code.get(at).i32(width).op("i32.add").get(end).op("i32.gt_u").brIf(done);
        code.get(at).get(shift).op("i32.add").get(at).memory(`${type}.load${width === 1 ? "8_u" : ""}`);
        code.memory(`${type}.store${width === 1 ? "8" : ""}`, 0, HEAP);
        code.get(at).i32(width).op("i32.add").set(at).br(again);
      })
    );
  copy(16, "v128");
  copy(1, "i32");
  eachRow(code, [{ base: pairs, width: 8 }], row, to, () => {
    code.get(pairs).memory("i32.load", 4, HEAP).i32(0).op("i32.gt_s").if(() =>
      code.get(pairs).get(pairs).memory("i32.load", 0, HEAP).get(shift).op("i32.add").memory("i32.store", 0, HEAP)
    );
  });
}
