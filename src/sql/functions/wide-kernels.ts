/** Kernels over columns of 16-byte values. JavaScript takes 20 ns a row to compare them as two BigInts. */
import { Module, sharedMemory } from "../../wasm/assembler.ts";

export interface WideKernels {
  /**
   * Writes a byte for each of `rowCount` rows: `expected` (0 or 1) is the byte if the values at `a` and `b` are equal. The steps are 16, or 0 for a
   * constant.
   */
  equal(a: number, stepA: number, b: number, stepB: number, rowCount: number, out: number, expected: number): void;
}

export const WIDE_BYTES = 16;
const kernels = new WeakMap<WebAssembly.Memory, WideKernels>();

export function wideKernels(memory: WebAssembly.Memory): WideKernels {
  let known = kernels.get(memory);
  if (known === undefined) {
    const module = new Module([sharedMemory(memory)]);
    addEqual(module);
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module.finish()), { env: { memory } });
    kernels.set(memory, known = exports as unknown as WideKernels);
  }
  return known;
}

function addEqual(module: Module): void {
  const { code } = module.function(["i32", "i32", "i32", "i32", "i32", "i32", "i32"], [], "equal");
  const [a, stepA, b, stepB, rowCount, out, expected] = [0, 1, 2, 3, 4, 5, 6];
  const end = code.local("i32");
  code.get(out).get(rowCount).op("i32.add").set(end);
  code.block((done) =>
    code.loop((again) => {
      code.get(out).get(end).op("i32.eq").brIf(done);
      code.get(out).get(a).memory("v128.load").get(b).memory("v128.load").op("i64x2.eq").op("i64x2.all_true");
      code.get(expected).op("i32.eq").memory("i32.store8");
      code.get(a).get(stepA).op("i32.add").set(a).get(b).get(stepB).op("i32.add").set(b);
      code.get(out).i32(1).op("i32.add").set(out).br(again);
    })
  );
}
