/** The rows of a table that UPDATE and DELETE change. */
import type { Expression } from "../ast.ts";
import type { Plan } from "../plan.ts";
import type { Scope, SubqueryHost } from "./expression-binder.ts";
import { FilteredRows } from "./filtered-rows.ts";
import { columnOf, filter, sort } from "./plans.ts";

export class ChangedRows extends FilteredRows {
  /** The scope of new values: a sub-query without a row is NULL. */
  get values(): Scope {
    const { relation: { columns }, names, subqueries } = this;
    const inValues: SubqueryHost = {
      membership: (...of) => subqueries.membership(...of),
      scalar: (...of) => subqueries.value(...of),
      exists: (...of) => subqueries.exists(...of),
      array: (...of) => subqueries.array(...of),
    };
    return { columns, names, subqueries: inValues };
  }

  keep(condition: Expression): void {
    const predicate = this.condition(condition);
    this.plan = filter(this.plan, predicate);
  }

  /** The changed rows in the order of their ids, which are the last column. Joins with sub-queries may change the order. */
  inOrder(changed: Plan): Plan {
    if (!this.isJoined) return changed;
    const rowId = columnOf(changed, changed.columns.length - 1);
    return sort(changed, [{ expression: rowId, descending: false }]);
  }
}
