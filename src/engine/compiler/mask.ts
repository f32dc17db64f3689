/** The kernel that tests a condition on values and writes the outcomes as bits: of row r, bit r & 7 of byte r >> 3. */
import type { CompiledKernel } from "./aggregate.ts";
import type { Input } from "./expression.ts";
import type { IrNode } from "./ir.ts";
import { inputShape, kernelCache, KernelWriter, shapeOf } from "./kernel.ts";

/** Rows begin with 0. Cell `mask`: the address of the bits. */
export function maskKernel(memory: WebAssembly.Memory, inputs: readonly Input[], predicate: IrNode): CompiledKernel {
  return kernelCache(memory).get(`mask|${inputShape(inputs)}|${shapeOf(predicate)}`, () => {
    const writer = new KernelWriter(memory, inputs), { code } = writer;
    const cells: Record<string, number> = { mask: writer.cell() };
    cells.count = writer.cellCount;
    const mask = writer.loadCell("i32", cells.mask), bits = code.local("i32"), bit = code.local("i32");
    writer.scalarRows(undefined, [], (row) => {
      code.i32(0).get(bits).get(row).i32(7).op("i32.and").tee(bit).op("i32.eqz").op("select").set(bits);
      writer.loadRow([predicate], row);
      writer.lower(predicate);
      code.i32(0).op("i32.ne").get(bit).op("i32.shl").get(bits).op("i32.or").set(bits);
      code.get(mask).get(row).i32(3).op("i32.shr_u").op("i32.add").get(bits).memory("i32.store8");
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}
