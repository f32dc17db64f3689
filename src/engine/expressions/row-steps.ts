/** Steps over values that no kernel computes with: CASE and IN, row by row. */
import type { Expr } from "../../sql/plan.ts";
import { typeOf, type Value } from "../../types/mod.ts";
import { setValue, TextArena } from "../columns.ts";
import { Buffer, ConstantColumn } from "./buffers.ts";
import { kernelStep } from "./kernel-step.ts";
import { argument, type Output, type Slot, type Stage } from "./slots.ts";

/** CASE over columns without a kernel form: each branch is computed as a whole column, then rows are picked. */
export function caseStep(stage: Stage, branches: { when: Expr; then: Expr }[], otherwise: Expr, type: string): Slot {
  const { context, space } = stage;
  const pending: Output[] = [];
  const columnOf = (expr: Expr, tag: string) => {
    const arg = argument(stage, expr, pending);
    // A bare NULL has the type of the whole expression.
    return {
      ...arg,
      filled: arg.constant && new ConstantColumn(context, space, { value: arg.constant.value, type: tag }),
    };
  };
  const parts = branches.map(({ when, then }) => ({ when: columnOf(when, "BOOLEAN"), then: columnOf(then, type) }));
  const last = columnOf(otherwise, type);
  if (pending.length > 0) kernelStep(stage, [], pending);
  const out = stage.slot(type);
  const buffer = new Buffer(space, type);
  const { width } = typeOf(type);
  stage.steps.push({
    run: (state) => {
      context.poll();
      const { heap } = context;
      const addressOf = (part: ReturnType<typeof columnOf>) =>
        part.filled?.reserve(state.rowCount) ?? state.vectors[part.slot]!.address;
      const whens = parts.map((part) => addressOf(part.when)),
        thens = parts.map((part) => addressOf(part.then)),
        rest = addressOf(last);
      const address = buffer.reserve(state.rowCount);
      for (let row = 0; row < state.rowCount; row++) {
        let k = 0;
        while (k < whens.length && heap.i8[whens[k] + row] === 0) k++;
        const from = (k < whens.length ? thens[k] : rest) + row * width;
        heap.u8.copyWithin(address + row * width, from, from + width);
      }
      state.vectors[out] = stage.vectorOf(out, address);
    },
  });
  return out;
}

export function wideMembershipStep(stage: Stage, operand: Expr, values: readonly Value[]): Slot {
  const { context, space } = stage;
  const pending: Output[] = [];
  const arg = argument(stage, operand, pending);
  if (pending.length > 0) kernelStep(stage, [], pending);
  const filled = arg.constant && new ConstantColumn(context, space, arg.constant);
  const out = stage.slot("BOOLEAN");
  const buffer = new Buffer(space, "BOOLEAN");
  const { heap } = context, { width } = typeOf(operand.type);
  // Values of 128 and 256 bits are equal if their bytes are.
  const list = new Buffer(space, operand.type).reserve(values.length), arena = new TextArena(space);
  const bytesAt = (at: number) => heap.u8.subarray(at, at + width).toHex();
  const wanted = new Set(values.map((value, k) => {
    setValue(heap, operand.type, list, k, value, arena);
    return bytesAt(list + k * width);
  }));
  stage.steps.push({
    run: (state) => {
      context.poll();
      const address = buffer.reserve(state.rowCount);
      const from = filled?.reserve(state.rowCount) ?? state.vectors[arg.slot]!.address;
      for (let row = 0; row < state.rowCount; row++) {
        heap.u8[address + row] = wanted.has(bytesAt(from + row * width)) ? 1 : 0;
      }
      state.vectors[out] = stage.vectorOf(out, address);
    },
  });
  return out;
}
