/** SQL: text to typed plans. */
export { bind } from "./bind.ts";
export { type BindContext, unknownColumn } from "./binder/context.ts";
export { COLUMNS_MAX as PIVOT_COLUMNS_MAX } from "./binder/pivot.ts";
export { BASE_TYPE, type FilledTable } from "./binder/catalog-tables.ts";
export { ARRAY_IN, systemClassOid, tableOid, viewOid } from "./binder/object-ids.ts";
export { conjuncts } from "./binder/plans.ts";
export { CLIENT_SETTINGS, type ClientFacts, settingsOf } from "./client-settings.ts";
export { type Effort, FULL_EFFORT, LongStatement, QUICK_EFFORT, quickEffort } from "./effort.ts";
export { keywords } from "./grammar.ts";
export { type ExplainDetails, explainNodes, scanMarks } from "./explain.ts";
export { explainLines, type ExplainNode } from "./explain-lines.ts";
export { finerSamples, type SampleRange } from "./finer-samples.ts";
export { parse } from "./parser.ts";
export { type RowCalls, rowCalls } from "./row-calls.ts";
export { answerCall, callsServer, type ServerCall, type ServerFacts, substituteCalls } from "./parameters.ts";
export { completePlan } from "./planner/complete.ts";
export { normalize as normalizeIntervals } from "./planner/intervals.ts";
export { isImmutable, optimizeStatement, usesClock } from "./planner/mod.ts";
export { mapStatement } from "./planner/nodes.ts";
export { quotedName, quotedText } from "./quoting.ts";
export { languageReference } from "./reference.ts";
export { accessIsOff } from "./statements/access/access-kind.ts";
export { categoryOf, kindOf, statementSource } from "./statements/mod.ts";
export { PARQUET_CODEC_DEFAULT } from "./statements/copy.ts";
export { soleCall } from "./statements/query.ts";
export { letterOf, microsIn } from "./statements/refresh-rule.ts";
export { columnRows } from "./statements/show-columns.ts";
export { partitionRows } from "./statements/show-partitions.ts";
export {
  type AccessCategory,
  type AnalyzedStatement,
  type Savepoints,
  type SourceServices,
  type StatementRows,
  type StatementRun,
  type StatementServices,
} from "./statements/statement.ts";
export type { ChangedTable, CopyOrder, RetypedColumn } from "./statements/statement.ts";
export { boundsOf, Script, splitScript } from "./script.ts";
