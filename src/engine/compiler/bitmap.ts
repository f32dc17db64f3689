/** The kernel that counts distinct integers of a known range, with one bit for each value. Cells: bitmap, low (i64). */
import type { CompiledKernel } from "./aggregate.ts";
import type { Input } from "./expression.ts";
import { i64, type IrNode } from "./ir.ts";
import { inputShape, kernelCache, KernelWriter, shapeOf } from "./kernel.ts";

/** `skip` is true for values that are not counted: nulls. */
export function bitmapKernel(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  predicate: IrNode | undefined,
  value: IrNode,
  skip: IrNode | undefined,
): CompiledKernel {
  const key = `bitmap|${inputShape(inputs)}|${predicate ? shapeOf(predicate) : ""}|${shapeOf(value)}|${
    skip ? shapeOf(skip) : ""
  }`;
  return kernelCache(memory).get(key, () => {
    const writer = new KernelWriter(memory, inputs);
    const { code } = writer;
    const cells: Record<string, number> = { bitmap: writer.cell(), low: writer.cell() };
    cells.count = writer.cellCount;
    const bitmap = writer.loadCell("i32", cells.bitmap), low = writer.loadCell("i64", cells.low);
    const wide = value.type === "i32" ? i64.extendS(value) : value;
    const place = code.local("i32"), at = code.local("i32");
    writer.scalarRows(predicate, skip === undefined ? [wide] : [wide, skip], () => {
      code.block((done) => {
        if (skip !== undefined) {
          writer.lower(skip);
          code.brIf(done);
        }
        writer.lower(wide);
        code.get(low).op("i64.sub").op("i32.wrap_i64").tee(place).i32(3).op("i32.shr_u").get(bitmap).op("i32.add").tee(
          at,
        );
        code.get(at).memory("i32.load8_u").i32(1).get(place).i32(7).op("i32.and").op("i32.shl").op("i32.or").memory(
          "i32.store8",
        );
      });
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}
