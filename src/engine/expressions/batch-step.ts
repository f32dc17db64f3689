/** A step that calls a batch function over whole columns. */
import { assert, withCaret } from "../../errors.ts";
import type { FunctionEntry } from "../../sql/functions/entry.ts";
import type { Expr } from "../../sql/plan.ts";
import { typeOf } from "../../types/mod.ts";
import { batchColumn, batchOut, functionContext, propagateNulls } from "../batch-calls.ts";
import { repeatFirst, TextArena } from "../columns.ts";
import { Buffer, ConstantColumn } from "./buffers.ts";
import { kernelStep } from "./kernel-step.ts";
import { argument, type Output, type Slot, type Stage } from "./slots.ts";

export function batchStep(stage: Stage, expr: Expr & { kind: "call" }, entry: FunctionEntry, types: string[]): Slot {
  assert(entry.batch !== undefined, `${expr.function} runs in a kernel or over batches`);
  const { context, space } = stage;
  const pending: Output[] = [];
  const args = expr.args.map((arg) => argument(stage, arg, pending));
  if (pending.length > 0) kernelStep(stage, [], pending);
  const constants = args.map((
    arg,
  ) => (arg.constant === undefined ? undefined : new ConstantColumn(context, space, arg.constant)));
  const out = stage.slot(expr.type);
  const buffer = new Buffer(space, expr.type);
  const arena = new TextArena(space);
  const call = functionContext(context, expr.at);
  const batch = entry.batch;
  // Calls with long constant texts are not evaluated during planning, but here once for each batch.
  const isConstant = entry.volatility !== "volatile" &&
    args.every((arg) => arg.constant !== undefined || stage.constantSlots.has(arg.slot));
  if (isConstant) stage.constantSlots.add(out);
  const { width } = typeOf(expr.type);
  stage.steps.push({
    run: (state) => {
      context.poll();
      call.rowOffset = stage.rowOffset;
      const rowCount = isConstant ? Math.min(1, state.rowCount) : state.rowCount;
      const columns = args.map((arg, k) => {
        const address = constants[k]?.reserve(state.rowCount) ?? state.vectors[arg.slot]!.address;
        return batchColumn(
          context,
          types[k] === undefined ? stage.types[arg.slot] : types[k],
          stage.types[arg.slot],
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
  });
  return out;
}
