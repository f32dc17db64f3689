/** A step of one kernel: a filter and the values computed for the rows that pass. */
import { assert } from "../../assert.ts";
import { typeOf } from "../../types/mod.ts";
import { fillConstant, TextArena } from "../columns.ts";
import { BoundKernel } from "../compiler/binding.ts";
import { formOf } from "../compiler/expression.ts";
import { projectKernel, type ProjectOutput } from "../compiler/project.ts";
import type { Constant, Vector } from "../contract.ts";
import { Buffer } from "./buffers.ts";
import { compilerFor } from "./entry-tables.ts";
import { allOf } from "./rules.ts";
import type { Slot, StageStep } from "../physical/stages.ts";
import type { Stage, Step } from "./slots.ts";

type KernelStep = Extract<StageStep, { kind: "kernel" }>;

export function kernelStep(stage: Stage, { predicates, outputs, rowIdColumn }: KernelStep): Step {
  const { context, space, plan: { types, dictionaries } } = stage;
  const compiler = compilerFor(types, dictionaries, context, space, { ...stage.options, rowIdColumn }, stage.compile);
  const predicate = predicates.length === 0 ? undefined : allOf(predicates.map((p) => compiler.lower(p)));
  // Constant 128-bit outputs are filled, not computed.
  const constants: { slot: Slot; expr: Constant }[] = [];
  const wide: { slot: Slot; source: Slot; k: number }[] = [];
  const kernelOutputs: { slot: Slot; output: ProjectOutput }[] = [];
  for (const { slot, expr, asText } of outputs) {
    const type = asText ? "STRING" : expr.type;
    const form = formOf(type);
    if (expr.kind === "constant" && (form === undefined || predicate === undefined)) {
      constants.push({ slot, expr });
    } else if (form === undefined) {
      assert(expr.kind === "column", "wide values are columns or constants");
      wide.push({ slot, source: expr.index, k: kernelOutputs.length });
      kernelOutputs.push({ slot, output: { kind: "copy", width: typeOf(type).width } });
    } else kernelOutputs.push({ slot, output: { kind: "value", form, node: compiler.value(expr, type) } });
  }
  const buffers = new Map(outputs.map(({ slot }) => [slot, new Buffer(space, types[slot])]));
  const vectors = outputs.map(({ slot }) => stage.vectorOf(slot, 0));
  const arena = new TextArena(space);
  let bound: BoundKernel | undefined;
  if (kernelOutputs.length > 0 || predicate !== undefined) {
    const kernel = projectKernel(context.heap.memory, compiler.inputs, predicate, kernelOutputs.map((o) => o.output));
    bound = new BoundKernel(kernel, compiler.inputs, context, space);
  }
  const filled = new Map<Slot, number>();
  const outBuffers = kernelOutputs.map(({ slot }) => buffers.get(slot)!);
  const outCells = kernelOutputs.map((_, k) => bound!.cells[`out${k}`]);
  const copyCells = wide.map(({ k }) => bound!.cells[`copy${k}`]);
  return {
    change: (changes) => {
      for (const each of constants) {
        const expr = changes.constant(each.expr);
        if (expr === each.expr) continue;
        each.expr = expr;
        filled.clear();
      }
      if (filled.size === 0) arena.release();
      const changed = compiler.changed(changes);
      if (changed !== undefined) bound?.change(changed);
      return changed !== undefined;
    },
    run: (state) => {
      const inputRows = state.rowCount;
      if (bound !== undefined) {
        bound.setColumns(state.vectors as Vector[], state.rowBase);
        for (let k = 0; k < outCells.length; k++) bound.setI32(outCells[k], outBuffers[k].reserve(inputRows));
        for (let k = 0; k < wide.length; k++) bound.setI32(copyCells[k], state.vectors[wide[k].source]!.address);
        state.rowCount = bound.run(0, inputRows);
      }
      for (const { slot, expr: { value } } of constants) {
        const address = buffers.get(slot)!.reserve(state.rowCount);
        if ((filled.get(slot) ?? 0) < state.rowCount) {
          fillConstant(context.heap, types[slot], address, state.rowCount, value, arena);
          filled.set(slot, buffers.get(slot)!.rows);
          fillConstant(context.heap, types[slot], address, buffers.get(slot)!.rows, value, arena);
        }
      }
      for (let k = 0; k < outputs.length; k++) {
        const { slot } = outputs[k];
        vectors[k].address = buffers.get(slot)!.address;
        state.vectors[slot] = vectors[k];
      }
    },
  };
}
