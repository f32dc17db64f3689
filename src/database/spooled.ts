/** Reads rows that a wire has spooled, so that they can be ordered and exported without running their statement again. */
import type { Answer, ExecuteOptions, SpooledRows } from "../api.ts";
import { asClientFault, SqlError, SQLSTATE } from "../errors.ts";
import type { Plan, SortNode } from "../sql/plan.ts";
import { typeOf } from "../types/mod.ts";
import type { Core } from "./core.ts";
import { rowsOutput } from "./execution.ts";
import type { RunSession } from "./run.ts";

export interface SpooledOrder {
  column: number;
  descending: boolean;
}

/** Types that a spool has only as text. */
const AS_TEXT: Readonly<Record<string, string>> = { SYMBOL: "SYMBOL_TEXT", INTERVAL: "VARCHAR" };

export async function readSpooled(
  { activity, execution, progress }: Core,
  { identity, client, catalogue }: RunSession,
  rows: SpooledRows,
  order: SpooledOrder | undefined,
  options: ExecuteOptions,
): Promise<Extract<Answer, { kind: "rows" }>> {
  const plan = planOf(rows, order), { signal, timeoutMs } = options;
  const running = activity.begin(`-- the rows of an earlier run\n${rows.statement}`, identity, client, options);
  const execute = (): Extract<Answer, { kind: "rows" }> => {
    const run = execution.run(plan, {
      ...{ output: rowsOutput(options), columns: plan.columns, user: identity.name, catalogue, signal, timeoutMs },
      running,
    });
    return {
      kind: "rows",
      columns: [...rows.columns],
      timestamp: -1,
      chunks: run.chunks,
      totalRows: () => run.totalRows(),
    };
  };
  try {
    const answer = await (progress.isWatched ? progress.watch(running, execute) : execute());
    running.endWithQuery();
    return answer as Extract<Answer, { kind: "rows" }>;
  } catch (error) {
    running.end();
    throw asClientFault(error);
  }
}

function planOf({ path, sizeBytes, rowCount, columns }: SpooledRows, order: SpooledOrder | undefined): Plan {
  const base = {
    columns: columns.map(({ name, type }) => ({ name, type: AS_TEXT[type] ?? type })),
    timestamp: -1,
    order: "none",
  } as const;
  const input: Plan = { ...base, node: "spooled", path, sizeBytes, rowCount };
  if (order === undefined) return input;
  const { name, type } = columns[order.column]!;
  if (typeOf(type).order === "none" && AS_TEXT[type] === undefined) {
    throw new SqlError(`column ${name}: values of ${typeOf(type).name} have no order`, 0, SQLSTATE.datatypeMismatch);
  }
  const expression = { kind: "column", index: order.column, type: base.columns[order.column]!.type } as const;
  return {
    ...base,
    node: "sort",
    input,
    keys: [{ expression, descending: order.descending, nulls: "last" }],
  } satisfies SortNode;
}
