/**
 * Row format: packs the values of a row from several columns next to each other. Fetching a row from a random address then costs one
 * cache miss instead of one for each column.
 */
import { type Code, Module, sharedMemory } from "../../wasm/assembler.ts";

export interface RowFunctions {
  /**
   * Writes rows from … to-1 of the columns (`columns` lists their addresses) to the row indices in the list `places`,
   * relative to `block`.
   */
  pack(columns: number, from: number, to: number, places: number, block: number): void;
  /** Writes the rows in the list `rows` to columns (`columns` lists their addresses). */
  unpack(block: number, rows: number, rowCount: number, columns: number): void;
}

/** Size of a row with values of these widths. Wide values come first. */
export function rowBytes(widths: readonly number[]): number {
  const sum = widths.reduce((a, b) => a + b, 0), most = Math.min(8, Math.max(...widths));
  return Math.ceil(sum / most) * most;
}

function offsetsOf(widths: readonly number[]): number[] {
  const offsets: number[] = [];
  let next = 0;
  const byWidth = widths.map((_, k) => k).sort((a, b) => widths[b] - widths[a]);
  for (const k of byWidth) {
    offsets[k] = next;
    next += widths[k];
  }
  return offsets;
}

const instances = new WeakMap<WebAssembly.Memory, Map<string, RowFunctions>>();

export function rowFunctions(memory: WebAssembly.Memory, widths: readonly number[]): RowFunctions {
  let all = instances.get(memory);
  if (all === undefined) instances.set(memory, all = new Map());
  const key = widths.join();
  let known = all.get(key);
  if (known === undefined) {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(build(memory, widths)), { env: { memory } });
    all.set(key, known = exports as unknown as RowFunctions);
  }
  return known;
}

const LOAD: Record<number, string> = { 1: "i32.load8_u", 2: "i32.load16_u", 4: "i32.load", 8: "i64.load" };
const STORE: Record<number, string> = { 1: "i32.store8", 2: "i32.store16", 4: "i32.store", 8: "i64.store" };

function build(memory: WebAssembly.Memory, widths: readonly number[]): Uint8Array<ArrayBuffer> {
  const module = new Module([sharedMemory(memory)]), offsets = offsetsOf(widths), stride = rowBytes(widths);
  buildPack(module, widths, offsets, stride);
  buildUnpack(module, widths, offsets, stride);
  return module.finish();
}

/** Loads the columns' addresses into locals. */
function columnsIn(code: Code, columns: number, widths: readonly number[]): number[] {
  return widths.map((_, k) => {
    const column = code.local("i32");
    code.get(columns).memory("i32.load", 4 * k).set(column);
    return column;
  });
}

function copyValue(code: Code, width: number, from: number, fromOffset: number, to: number, toOffset: number): void {
  const part = Math.min(8, width);
  for (let at = 0; at < width; at += part) {
    code.get(to).get(from).memory(LOAD[part], fromOffset + at).memory(STORE[part], toOffset + at);
  }
}

function buildPack(module: Module, widths: readonly number[], offsets: readonly number[], stride: number): void {
  const { code } = module.function(["i32", "i32", "i32", "i32", "i32"], [], "pack");
  const [columns, from, to, places, block] = [0, 1, 2, 3, 4];
  const sources = columnsIn(code, columns, widths), end = code.local("i32"), row = code.local("i32");
  sources.forEach((source, k) => code.get(source).get(from).i32(widths[k]).op("i32.mul").op("i32.add").set(source));
  code.get(to).get(from).op("i32.sub").i32(2).op("i32.shl").get(places).op("i32.add").set(end);
  code.block((done) =>
    code.loop((again) => {
      code.get(places).get(end).op("i32.ge_u").brIf(done);
      code.get(places).memory("i32.load").i32(stride).op("i32.mul").get(block).op("i32.add").set(row);
      sources.forEach((source, k) => {
        copyValue(code, widths[k], source, 0, row, offsets[k]);
        code.get(source).i32(widths[k]).op("i32.add").set(source);
      });
      code.get(places).i32(4).op("i32.add").set(places).br(again);
    })
  );
}

function buildUnpack(module: Module, widths: readonly number[], offsets: readonly number[], stride: number): void {
  const { code } = module.function(["i32", "i32", "i32", "i32"], [], "unpack");
  const [block, rows, rowCount, columns] = [0, 1, 2, 3];
  const targets = columnsIn(code, columns, widths), end = code.local("i32"), row = code.local("i32");
  code.get(rowCount).i32(2).op("i32.shl").get(rows).op("i32.add").set(end);
  code.block((done) =>
    code.loop((again) => {
      code.get(rows).get(end).op("i32.ge_u").brIf(done);
      code.get(rows).memory("i32.load").i32(stride).op("i32.mul").get(block).op("i32.add").set(row);
      targets.forEach((target, k) => {
        copyValue(code, widths[k], row, offsets[k], target, 0);
        code.get(target).i32(widths[k]).op("i32.add").set(target);
      });
      code.get(rows).i32(4).op("i32.add").set(rows).br(again);
    })
  );
}
