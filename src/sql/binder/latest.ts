/**
 * LATEST ON … PARTITION BY, and the old LATEST BY.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { LatestOn } from "../ast.ts";
import type { Expr, Plan, WindowCall } from "../plan.ts";
import { type Names, plainOf, typeMismatch, unknownColumn } from "./context.ts";
import type { Expressions } from "./expressions.ts";
import { columnOf, project } from "./plans.ts";
import { candidates, lookUp, markTimestampUsed, type Relation } from "./scope.ts";
import { displayName, isTimestamp } from "./types.ts";
import { wholeFrame } from "./windows.ts";

export function latestPlan(
  expressions: Expressions,
  relation: Relation,
  input: Plan,
  latest: LatestOn,
  names: Names,
): Plan {
  // The old form also takes tables without a designated timestamp.
  const byRows = latest.timestamp === undefined && relation.isTable && relation.timestamp < 0;
  const timestamp = byRows ? -1 : timestampIndex(relation, latest, names);
  const keys = latest.partitionBy.map((item) => {
    const key = plainOf(item, names);
    if (key.kind !== "column") {
      const at = key.kind === "call" ? key.at + key.name.length : key.at;
      throw new SqlError(
        "the keys of LATEST ON must be columns: compute other keys in a sub-query",
        at,
        SQLSTATE.grouping,
      );
    }
    if (candidates(relation.columns, key.path).length === 0) {
      throw unknownColumn(key.path.at(-1)!.text, key.at, relation.columns);
    }
    return expressions.bind(key, { columns: relation.columns, names });
  });
  if (keys.length === 0) throw new SqlError("LATEST ON needs PARTITION BY", latest.at);
  if (byRows) return lastRows(input, keys, latest.at);
  return {
    node: "latest",
    input,
    time: columnOf(input, timestamp),
    keys,
    columns: input.columns,
    timestamp,
    order: "asc",
  };
}

/** The last row of each key, in the order of the rows. */
function lastRows(input: Plan, keys: Expr[], at: number): Plan {
  const call: WindowCall = {
    function: "row_number()",
    args: [],
    ignoreNulls: false,
    partitionBy: [],
    orderBy: [],
    frame: wholeFrame(false),
    type: "LONG",
    at,
  };
  const columns = [...input.columns, { name: call.function, type: call.type }];
  const numbered: Plan = { node: "window", input, calls: [call], columns, timestamp: -1, order: "none" };
  const time = columnOf(numbered, input.columns.length);
  const last: Plan = { node: "latest", input: numbered, time, keys, columns, timestamp: -1, order: "none" };
  return project(last, input.columns.map((_, index) => columnOf(last, index)), input.columns.map(({ name }) => name));
}

function timestampIndex(relation: Relation, latest: LatestOn, names: Names): number {
  const e = latest.timestamp && plainOf(latest.timestamp, names);
  if (e === undefined) {
    if (relation.timestamp < 0) {
      throw new SqlError("LATEST BY needs a designated timestamp", latest.at, SQLSTATE.grouping);
    }
    markTimestampUsed(relation, latest.at);
    return relation.timestamp;
  }
  if (e.kind !== "column") throw new SqlError("LATEST ON needs a column", e.at);
  const column = lookUp(relation.columns, e.path, e.at);
  if (!isTimestamp(column.type)) {
    throw typeMismatch(`LATEST ON needs a TIMESTAMP: ${column.name} is ${displayName(column.type)}`, e.at);
  }
  if (relation.isTable && column.index !== relation.timestamp) {
    throw new SqlError(
      `LATEST ON needs the table's designated timestamp: ${column.name} is another column`,
      e.at,
      SQLSTATE.grouping,
    );
  }
  return column.index;
}
