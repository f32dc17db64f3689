/**
 * Gathers rows of a column by a list of row numbers: one function for each width, with and without "no row" in the
 * list.
 */
import { type Code, type Label, Module, sharedMemory } from "../../wasm/assembler.ts";

/** `none`: eight bytes that represent row -1, repeated for wider values. */
type Gather = (source: number, rows: number, rowCount: number, target: number, none: bigint) => void;

const WIDTHS = [1, 2, 4, 8, 16, 32];
const LOAD: Record<number, string> = { 1: "i32.load8_u", 2: "i32.load16_u", 4: "i32.load" };
const STORE: Record<number, string> = { 1: "i32.store8", 2: "i32.store16", 4: "i32.store" };

const instances = new WeakMap<WebAssembly.Memory, Map<string, Gather>>();

/** For values of `width` bytes. Without `nulls` the list must not contain -1. */
export function gatherOf(memory: WebAssembly.Memory, width: number, nulls: boolean): Gather {
  let known = instances.get(memory);
  if (known === undefined) instances.set(memory, known = instantiate(memory));
  return known.get(nameOf(width, nulls))!;
}

function nameOf(width: number, nulls: boolean): string {
  return `${nulls ? "gatherOrNull" : "gather"}${width}`;
}

function instantiate(memory: WebAssembly.Memory): Map<string, Gather> {
  const module = new Module([sharedMemory(memory)]);
  for (const width of WIDTHS) {
    for (const nulls of [false, true]) {
      const { code } = module.function(["i32", "i32", "i32", "i32", "i64"], [], nameOf(width, nulls));
      write(code, width, nulls);
    }
  }
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module.finish()), { env: { memory } });
  return new Map(Object.entries(exports) as [string, Gather][]);
}

function write(code: Code, width: number, nulls: boolean): void {
  const [source, rows, rowCount, target, none] = [0, 1, 2, 3, 4];
  const end = code.local("i32"), row = code.local("i32");
  const from = () => code.get(source).get(row).i32(Math.log2(width)).op("i32.shl").op("i32.add");
  const copy = () => {
    if (width < 8) {
      code.get(target);
      from();
      code.memory(LOAD[width]).memory(STORE[width]);
    }
    for (let word = 0; word < width / 8 && width >= 8; word++) {
      code.get(target);
      from();
      code.memory("i64.load", 8 * word).memory("i64.store", 8 * word);
    }
  };
  const fill = () => {
    if (width < 8) code.get(target).get(none).op("i32.wrap_i64").memory(STORE[width]);
    for (let word = 0; word < width / 8 && width >= 8; word++) code.get(target).get(none).memory("i64.store", 8 * word);
  };
  /** Four rows at once take fewer instructions each, so that more loads are under way. `single`: if fewer are left, or one is no row. */
  const copyFour = (single: Label) => {
    const four = code.local("v128"), values = code.local("v128"), lanes = 16 / width;
    code.get(end).get(rows).op("i32.sub").i32(16).op("i32.lt_u").brIf(single);
    code.get(rows).memory("v128.load").set(four);
    if (nulls) code.get(four).op("i32x4.bitmask").brIf(single);
    code.get(four).i32(Math.log2(width)).op("i32x4.shl").get(source).op("i32x4.splat").op("i32x4.add").set(four);
    for (let k = 0; k < 4; k++) {
      code.get(four).lane("i32x4.extract_lane", k);
      if (k % lanes === 0) code.memory(`v128.load${8 * width}_zero`).set(values);
      else code.get(values).memoryLane(`v128.load${8 * width}_lane`, k % lanes).set(values);
      if (k % lanes === lanes - 1) code.get(target).get(values).memory("v128.store", width * (k + 1 - lanes));
    }
    code.get(rows).i32(16).op("i32.add").set(rows).get(target).i32(4 * width).op("i32.add").set(target);
  };
  code.get(rows).get(rowCount).i32(2).op("i32.shl").op("i32.add").set(end);
  code.block((done) =>
    code.loop((again) => {
      if (width === 4 || width === 8) {
        code.block((single) => {
          copyFour(single);
          code.br(again);
        });
      }
      code.get(rows).get(end).op("i32.ge_u").brIf(done);
      code.get(rows).memory("i32.load").set(row);
      if (nulls) code.get(row).i32(0).op("i32.lt_s").if(fill, copy);
      else copy();
      code.get(rows).i32(4).op("i32.add").set(rows);
      code.get(target).i32(width).op("i32.add").set(target).br(again);
    })
  );
}
