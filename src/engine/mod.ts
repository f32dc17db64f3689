/** The engine layer: executes plans. */
export type * from "./contract.ts";
export { PlanChanges } from "./changes.ts";
export { packAppendBatch, toAppendBatch, unpackAppendBatch, unpackChangedBatch } from "./append.ts";
export { endOfTexts } from "./columns.ts";
export { flushKernelRows } from "./compiler/binding.ts";
export { ConstantCalls, type ConstantContext } from "./constant-calls.ts";
export { workAt } from "./long-texts.ts";
export { collectWith, CountedMemory, createQueryMemory } from "./memory.ts";
export { createOperator } from "./operators/mod.ts";
export { rowsLeft } from "./operators/morsels.ts";
export {
  type Calls,
  type Grouping,
  type GroupSpec,
  hasKernel,
  nodeCalls,
  type PhysicalPlan,
  physicalPlan,
  type SpillWay,
} from "./physical/mod.ts";
export { isOpen, scansOf, treeOf } from "./packed-plan.ts";
export { type PostedError, revivedError } from "./posted-error.ts";
export { CANCEL, cancelError } from "./slot.ts";
export { QuerySpill, removeSpilled, SPILL_UNIT_BYTES } from "./spill/mod.ts";
export { answerFromStatistics } from "./statistics.ts";
export { Analysis, type PlanStatistics } from "./analysis.ts";
export {
  createMailboxes,
  createScheduler,
  type QueryStatistics,
  type RunningQuery,
  type Scheduler,
  type SchedulerOptions,
} from "./scheduler.ts";
export { parquetSchema } from "./parquet/file.ts";
export { TimeBuckets } from "./time-buckets.ts";
