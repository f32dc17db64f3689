/** A step that calls a batch function over whole columns. */
import { assert } from "../../assert.ts";
import { withCaret } from "../../errors.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { batchColumn, batchOut, functionContext, propagateNulls } from "../batch-calls.ts";
import { gather, repeatFirst, TextArena } from "../columns.ts";
import type { StageStep } from "../physical/stages.ts";
import { Buffer, ConstantColumn } from "./buffers.ts";
import { DistinctTexts } from "./distinct-texts.ts";
import type { Stage, Step } from "./slots.ts";

type BatchStep = Extract<StageStep, { kind: "batch" }>;

export function batchStep(stage: Stage, step: BatchStep): Step {
  const { call: expr, args, out, isConstant } = step;
  const { context, space, plan } = stage, { entry, types } = context.functions.resolve(expr.function);
  const batch = entry.batch ?? entry.wide;
  assert(batch !== undefined, `${expr.function} runs in a kernel or over batches`);
  const constants = args.map(({ constant }) => constant && new ConstantColumn(context, space, constant));
  const buffer = new Buffer(space, expr.type);
  const arena = new TextArena(space);
  const call = functionContext(context, expr);
  const { width } = typeOf(expr.type);
  const texts = distinctOf(stage, step);
  return {
    run: (state) => {
      context.poll();
      call.rowOffset = stage.rowOffset;
      const found = texts?.find(state.vectors[texts.slot]!.address, state.rowCount);
      // Calls with long constant texts are not evaluated during planning, but here once for each batch.
      const rowCount = found?.count ?? (isConstant ? Math.min(1, state.rowCount) : state.rowCount);
      const columns = args.map((arg, k) => {
        const address = constants[k]?.reserve(state.rowCount) ?? found?.pairs ?? state.vectors[arg.slot]!.address;
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
      const address = found === undefined ? buffer.reserve(state.rowCount) : texts!.results.reserve(rowCount);
      const target = batchOut(context, expr.type, address, rowCount, arena);
      try {
        batch(columns, target, rowCount, call);
      } catch (error) {
        throw withCaret(error, expr.at);
      }
      if (entry.nulls === "propagate") propagateNulls(context, columns, target, rowCount);
      if (isConstant) repeatFirst(context.heap, address, width, state.rowCount);
      if (found === undefined) return void (state.vectors[out] = stage.vectorOf(out, address));
      const all = buffer.reserve(state.rowCount);
      gather(context.heap, expr.type, address, found.numbers, state.rowCount, all, false);
      state.vectors[out] = stage.vectorOf(out, all);
    },
  };
}

/** Finds the texts that the function is called for, if its result depends on one text only. */
function distinctOf({ context, space, plan }: Stage, { call, args, isConstant }: BatchStep) {
  const slots = new Set(args.filter(({ constant }) => constant === undefined).map((arg) => arg.slot)), [slot] = slots;
  const { entry } = context.functions.resolve(call.function);
  if (isConstant || slot === undefined || slots.size > 1 || entry.volatility === "volatile") return undefined;
  if (layoutOf(plan.types[slot]!) !== "text") return undefined;
  return Object.assign(new DistinctTexts(context.heap, space), {
    slot,
    /** For each of the texts. */
    results: new Buffer(space, call.type),
  });
}
