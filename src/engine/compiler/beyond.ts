/** The kernel for ORDER BY … LIMIT: numbers of the rows that may still be among the first. */
import { NULL_I32, NULL_I64 } from "../../types/mod.ts";
import type { CompiledKernel } from "./aggregate.ts";
import { type ColumnForm, FORM_TYPE, type Input } from "./expression.ts";
import { f64, i32, i64, input, type IrNode } from "./ir.ts";
import { kernelCache, KernelWriter } from "./kernel.ts";

/**
 * Lists, in order, the rows whose key is null or not beyond `limit`. Inputs: the key (column 0), the limit. Cell: rows
 * (an i32 list). Result: the number of rows.
 */
export function beyondKernel(
  memory: WebAssembly.Memory,
  form: "i32" | "i64" | "f64",
  descending: boolean,
): CompiledKernel {
  return kernelCache(memory).get(`beyond|${form}|${descending}`, () => {
    const type = FORM_TYPE[form];
    const writer = new KernelWriter(memory, beyondInputs(form, 0n));
    const { code } = writer;
    const cells: Record<string, number> = { rows: writer.cell() };
    cells.count = writer.cellCount;
    const rows = writer.loadCell("i32", cells.rows);
    const count = code.local("i32");
    writer.scalarRows(reaches(input(0, type), input(1, type), form, descending), [], (row) => {
      code.get(rows).get(count).i32(2).op("i32.shl").op("i32.add").get(row).memory("i32.store");
      code.get(count).i32(1).op("i32.add").set(count);
    });
    code.get(count);
    return { bytes: writer.finish(), cells };
  });
}

export function beyondInputs(form: ColumnForm, limit: number | bigint): Input[] {
  return [{ kind: "column", column: 0, form }, { kind: "constant", type: FORM_TYPE[form], value: limit }];
}

function reaches(key: IrNode, limit: IrNode, form: "i32" | "i64" | "f64", descending: boolean): IrNode {
  switch (form) {
    case "f64":
      return i32.or(descending ? f64.ge(key, limit) : f64.le(key, limit), f64.ne(key, key));
    case "i64":
      return i32.or(
        descending ? i64.geS(key, limit) : i64.leS(key, limit),
        i64.eq(key, i64.const(NULL_I64)),
      );
    case "i32":
      return i32.or(descending ? i32.geS(key, limit) : i32.leS(key, limit), i32.eq(key, i32.const(NULL_I32)));
  }
}
