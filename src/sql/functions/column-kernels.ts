/** What kernels over the columns of a batch share. */
import { NULL_TEXT } from "../../types/mod.ts";
import { type Code, Module, sharedMemory, type ValueType } from "../../wasm/assembler.ts";

/** A kernel is made for at least this many rows: to make one takes as long as JavaScript takes for some thousand rows. */
export const KERNEL_ROWS_MIN = 1_024;

const kernels = new WeakMap<WebAssembly.Memory, Map<string, unknown>>();

/** A kernel over a heap, which is made once. `name`: unique among all kernels. */
export function kernelOf<Kernel>(
  memory: WebAssembly.Memory,
  name: string,
  parameters: ValueType[],
  results: ValueType[],
  build: (code: Code) => void,
): Kernel {
  let known = kernels.get(memory);
  if (known === undefined) kernels.set(memory, known = new Map());
  let kernel = known.get(name);
  if (kernel === undefined) {
    const module = new Module([sharedMemory(memory)]);
    build(module.function(parameters, results, "run").code);
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module.finish()), { env: { memory } });
    known.set(name, kernel = exports.run);
  }
  return kernel as Kernel;
}

/** Stores a text or an array that is NULL. `heap`: its index among the memories of the module. */
export function storeNone(code: Code, out: number, heap = 0): void {
  code.get(out).i64(NULL_TEXT).memory("i64.store", 0, heap);
}

/** Emits a loop over the rows `row` … `to`-1, in whose body each `base` is the address of the row's value. */
export function eachRow(
  code: Code,
  columns: readonly { base: number; width: number }[],
  row: number,
  to: number,
  body: () => void,
): void {
  for (const { base, width } of columns) code.get(base).get(row).i32(width).op("i32.mul").op("i32.add").set(base);
  code.block((done) =>
    code.loop((again) => {
      code.get(row).get(to).op("i32.ge_u").brIf(done);
      body();
      for (const { base, width } of columns) code.get(base).i32(width).op("i32.add").set(base);
      code.get(row).i32(1).op("i32.add").set(row).br(again);
    })
  );
}
