/** The rows of a table that UPDATE and DELETE change, with what the sub-queries of their clauses add. */
import type { Expression } from "../ast.ts";
import type { Plan } from "../plan.ts";
import type { Names } from "./context.ts";
import type { Scope, SubqueryHost } from "./expression-binder.ts";
import { leavingOutIntervals } from "./membership.ts";
import { columnOf, filter, sort } from "./plans.ts";
import type { Queries } from "./query.ts";
import type { Relation } from "./scope.ts";
import { Subqueries } from "./subqueries.ts";

export class ChangedRows {
  plan: Plan;
  private isJoined = false;
  private readonly subqueries: Subqueries;

  constructor(private readonly queries: Queries, private readonly relation: Relation, private readonly names: Names) {
    this.plan = relation.plan;
    this.subqueries = new Subqueries(queries, {
      base: relation.plan,
      columns: relation.columns,
      input: () => this.plan,
      replace: (plan) => {
        this.plan = plan;
        this.isJoined = true;
      },
    });
  }

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
    const { relation, relation: { columns }, names, subqueries, queries: { expressions } } = this;
    const where = leavingOutIntervals(condition, relation);
    const predicate = expressions.condition(where, { columns, names, subqueries, isFilter: true });
    this.plan = filter(this.plan, predicate);
  }

  /** The changed rows in the order of their ids, which are the last column. Joins with sub-queries may change the order. */
  inOrder(changed: Plan): Plan {
    if (!this.isJoined) return changed;
    const rowId = columnOf(changed, changed.columns.length - 1);
    return sort(changed, [{ expression: rowId, descending: false }]);
  }
}
