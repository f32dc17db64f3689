/** The rows of one source, with the columns that the sub-queries of its conditions and values add. */
import type { Expression } from "../ast.ts";
import type { Expr, Plan } from "../plan.ts";
import type { Names } from "./context.ts";
import { leavingOutIntervals } from "./membership.ts";
import type { Queries } from "./query.ts";
import type { Relation } from "./scope.ts";
import { Subqueries } from "./subqueries.ts";

export class FilteredRows {
  plan: Plan;
  /** A sub-query was joined. */
  isJoined = false;
  readonly subqueries: Subqueries;

  constructor(readonly queries: Queries, readonly relation: Relation, readonly names: Names) {
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

  /** A condition over the rows. Its sub-queries are joined, but it does not filter them yet. */
  condition(condition: Expression): Expr {
    const { queries: { expressions }, relation, relation: { columns }, names, subqueries } = this;
    return expressions.condition(leavingOutIntervals(condition, relation), {
      columns,
      names,
      subqueries,
      isFilter: true,
    });
  }
}
