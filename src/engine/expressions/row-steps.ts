/** Steps over values that no kernel computes with: CASE and IN, row by row. */
import { typeOf } from "../../types/mod.ts";
import { setValue, TextArena } from "../columns.ts";
import type { Argument, StageStep } from "../physical/stages.ts";
import { Buffer, ConstantColumn } from "./buffers.ts";
import type { Stage, Step } from "./slots.ts";

type CaseStep = Extract<StageStep, { kind: "case" }>;
type InStep = Extract<StageStep, { kind: "in" }>;

/** CASE over columns without a kernel form: each branch is computed as a whole column, then rows are picked. */
export function caseStep(stage: Stage, { branches, otherwise, type, out }: CaseStep): Step {
  const { context, space } = stage;
  // A bare NULL has the type of the whole expression.
  const columnOf = ({ slot, constant }: Argument, tag: string) => ({
    slot,
    filled: constant && new ConstantColumn(context, space, { value: constant.value, type: tag }),
  });
  const parts = branches.map(({ when, then }) => ({ when: columnOf(when, "BOOLEAN"), then: columnOf(then, type) }));
  const last = columnOf(otherwise, type);
  const buffer = new Buffer(space, type);
  const { width } = typeOf(type);
  return {
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
  };
}

export function wideMembershipStep(stage: Stage, { operand, type, values, out }: InStep): Step {
  const { context, space } = stage;
  const filled = operand.constant && new ConstantColumn(context, space, operand.constant);
  const buffer = new Buffer(space, "BOOLEAN");
  const { heap } = context, { width } = typeOf(type);
  // Values of 128 and 256 bits are equal if their bytes are.
  const list = new Buffer(space, type).reserve(values.length), arena = new TextArena(space);
  const bytesAt = (at: number) => heap.u8.subarray(at, at + width).toHex();
  const wanted = new Set(values.map((value, k) => {
    setValue(heap, type, list, k, value, arena);
    return bytesAt(list + k * width);
  }));
  return {
    run: (state) => {
      context.poll();
      const address = buffer.reserve(state.rowCount);
      const from = filled?.reserve(state.rowCount) ?? state.vectors[operand.slot]!.address;
      for (let row = 0; row < state.rowCount; row++) {
        heap.u8[address + row] = wanted.has(bytesAt(from + row * width)) ? 1 : 0;
      }
      state.vectors[out] = stage.vectorOf(out, address);
    },
  };
}
