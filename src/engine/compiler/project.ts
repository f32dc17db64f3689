/**
 * The kernel of filter and projection: writes rows that pass contiguously into the output columns. Result: their
 * number.
 */
import { type ColumnForm, FORM_WIDTH, type Input } from "./expression.ts";
import type { IrNode } from "./ir.ts";
import { inputShape, type Kernel, kernelCache, KernelWriter, shapeOf, storeOf } from "./kernel.ts";
import { lowerLanes, toEven } from "./lower.ts";

export type ProjectOutput =
  | { kind: "value"; node: IrNode; form: ColumnForm }
  /** A column of 16 or 32 bytes for each row, copied. */
  | { kind: "copy"; width: number };

export interface ProjectKernel {
  run: Kernel;
  /**
   * Cells with the outputs' addresses `out0` …, the addresses of copied columns `copy0` …, and `count`, the number of
   * all cells.
   */
  cells: Record<string, number>;
}

export function projectKernel(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  predicate: IrNode | undefined,
  outputs: readonly ProjectOutput[],
): ProjectKernel {
  const key = [
    "project",
    inputShape(inputs),
    predicate === undefined ? "" : shapeOf(predicate),
    ...outputs.map((out) => (out.kind === "copy" ? `copy${out.width}` : `${out.form}=${shapeOf(out.node)}`)),
  ].join("|");
  return kernelCache(memory).get(key, () => build(memory, inputs, predicate, outputs));
}

function build(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  predicate: IrNode | undefined,
  outputs: readonly ProjectOutput[],
) {
  const writer = new KernelWriter(memory, inputs);
  const { code } = writer;
  const cells: Record<string, number> = {};
  const places = outputs.map((out, k) => {
    const target = writer.loadCell("i32", cells[`out${k}`] = writer.cell());
    const source = out.kind === "copy" ? writer.loadCell("i32", cells[`copy${k}`] = writer.cell()) : -1;
    return { target, source };
  });
  const count = code.local("i32");
  const nodes = outputs.flatMap((out) => (out.kind === "value" ? [out.node] : []));

  const address = (base: number, index: number, width: number) => {
    code.get(base).get(index);
    if (width > 1) code.i32(Math.log2(width)).op("i32.shl");
    code.op("i32.add");
  };
  const storeRow = (row: number) => {
    outputs.forEach((out, k) => {
      const { target, source } = places[k];
      if (out.kind === "value") {
        address(target, count, FORM_WIDTH[out.form]);
        writer.lower(out.node);
        code.memory(storeOf(out.form));
        return;
      }
      for (let offset = 0; offset < out.width; offset += 16) {
        address(target, count, out.width);
        address(source, row, out.width);
        code.memory("v128.load", offset).memory("v128.store", offset);
      }
    });
    code.get(count).i32(1).op("i32.add").set(count);
  };

  const laneable = predicate === undefined && outputs.length > 0 && outputs.every((out) => out.kind === "value") &&
    writer.hasLanes(nodes);
  if (laneable) {
    writer.splatConstants();
    writer.strips((row, stripEnd) => {
      code.block((done) =>
        code.loop((again) => {
          code.get(row).i32(2).op("i32.add").get(stripEnd).op("i32.gt_s").brIf(done);
          const scope = writer.laneScope();
          writer.loadLanes(nodes, row, 0, scope);
          outputs.forEach((out, k) => {
            if (out.kind !== "value") return;
            const lanes = code.local("v128");
            lowerLanes(out.node, scope);
            code.set(lanes);
            storeLanes(out.form, lanes, () => address(places[k].target, count, FORM_WIDTH[out.form]));
          });
          code.get(row).i32(2).op("i32.add").set(row);
          code.get(count).i32(2).op("i32.add").set(count).br(again);
        })
      );
      code.get(row).get(stripEnd).op("i32.lt_s").if(() => {
        writer.loadRow(nodes, row);
        storeRow(row);
        code.get(row).i32(1).op("i32.add").set(row);
      });
    });
  } else writer.scalarRows(predicate, nodes, storeRow);
  code.get(count);
  cells.count = writer.cellCount;
  return { bytes: writer.finish(), cells };

  function storeLanes(form: ColumnForm, lanes: number, pushAddress: () => void): void {
    switch (form) {
      case "i64":
      case "f64":
        pushAddress();
        code.get(lanes).memory("v128.store");
        return;
      case "i32":
        pushAddress();
        code.get(lanes);
        toEven(code);
        code.memoryLane("v128.store64_lane", 0);
        return;
      case "f32":
        pushAddress();
        code.get(lanes).op("f32x4.demote_f64x2_zero").memoryLane("v128.store64_lane", 0);
        return;
      default:
        for (const lane of [0, 1]) {
          pushAddress();
          code.get(lanes).lane("i64x2.extract_lane", lane).op("i32.wrap_i64").memory(
            storeOf(form),
            lane * FORM_WIDTH[form],
          );
        }
    }
  }
}
