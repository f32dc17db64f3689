/** A step that calls a batch function over whole columns. */
import { assert } from "../../assert.ts";
import { withCaret } from "../../errors.ts";
import { typeOf } from "../../types/mod.ts";
import { batchColumn, batchOut, functionContext, propagateNulls } from "../batch-calls.ts";
import { repeatFirst, TextArena } from "../columns.ts";
import type { StageStep } from "../physical/stages.ts";
import { Buffer, ConstantColumn } from "./buffers.ts";
import type { Stage, Step } from "./slots.ts";

type BatchStep = Extract<StageStep, { kind: "batch" }>;

export function batchStep(stage: Stage, { call: expr, args, out, isConstant }: BatchStep): Step {
  const { context, space, plan } = stage, { entry, types } = context.functions.resolve(expr.function);
  const batch = entry.batch ?? entry.wide;
  assert(batch !== undefined, `${expr.function} runs in a kernel or over batches`);
  const constants = args.map(({ constant }) => constant && new ConstantColumn(context, space, constant));
  const buffer = new Buffer(space, expr.type);
  const arena = new TextArena(space);
  const call = functionContext(context, expr);
  const { width } = typeOf(expr.type);
  return {
    run: (state) => {
      context.poll();
      call.rowOffset = stage.rowOffset;
      // Calls with long constant texts are not evaluated during planning, but here once for each batch.
      const rowCount = isConstant ? Math.min(1, state.rowCount) : state.rowCount;
      const columns = args.map((arg, k) => {
        const address = constants[k]?.reserve(state.rowCount) ?? state.vectors[arg.slot]!.address;
        return batchColumn(
          context,
          types[k] === undefined ? plan.types[arg.slot] : types[k],
          plan.types[arg.slot],
          address,
          rowCount,
          arg.constant?.value,
          arg.constant !== undefined,
          arg.dictionary,
        );
      });
      arena.release();
      const address = buffer.reserve(state.rowCount);
      const target = batchOut(context, expr.type, address, rowCount, arena);
      try {
        batch(columns, target, rowCount, call);
      } catch (error) {
        throw withCaret(error, expr.at);
      }
      if (entry.nulls === "propagate") propagateNulls(context, columns, target, rowCount);
      if (isConstant) repeatFirst(context.heap, address, width, state.rowCount);
      state.vectors[out] = stage.vectorOf(out, address);
    },
  };
}
