/**
 * Sub-queries as values in WHERE: each joins the query's input, and the expression reads the column that the join adds.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Query } from "../ast.ts";
import type { Expr, Plan } from "../plan.ts";
import { type Names, typeMismatch } from "./context.ts";
import type { SubqueryHost } from "./expressions.ts";
import { TRUE } from "./literals.ts";
import { columnOf, isOneRow, project } from "./plans.ts";
import type { BoundQuery, Queries } from "./select.ts";
import { displayName, isText } from "./types.ts";

export class Subqueries implements SubqueryHost {
  constructor(
    private readonly queries: Queries,
    private readonly input: () => Plan,
    private readonly replaceInput: (plan: Plan) => void,
  ) {}

  private bindOne(query: Query, names: Names, at: number): BoundQuery {
    const bound = this.queries.bind(query, names);
    if (bound.visible !== 1) {
      throw new SqlError(`a sub-query of one column is wanted: found ${bound.visible}`, at, SQLSTATE.syntax);
    }
    return bound;
  }

  /** A left join with the distinct values and a mark: a row without match gets false, the BOOLEAN without value. */
  membership(operand: Expr, query: Query, names: Names, at: number): Expr {
    const { plan: values } = this.bindOne(query, names, at);
    const expressions = this.queries.expressions;
    let key = operand;
    let value = columnOf(values, 0);
    if (value.type === "CHAR" && isText(operand.type)) value = expressions.cast(value, "STRING", at);
    const { type } = value;
    if (type !== operand.type || type === "SYMBOL") {
      if (isText(type) && isText(operand.type)) {
        key = operand.type === "SYMBOL" && type !== "SYMBOL" ? expressions.cast(operand, "STRING", at) : operand;
        value = type === "SYMBOL" && operand.type !== "SYMBOL" ? expressions.cast(value, "STRING", at) : value;
      } else if (type !== "NULL") {
        const fits = ["LONG", "DOUBLE", "TIMESTAMP"].find((wide) =>
          implicit(type, wide) && implicit(operand.type, wide)
        );
        if (fits === undefined) {
          throw typeMismatch(`${displayName(operand.type)} is compared with ${displayName(type)}`, at);
        }
        key = expressions.cast(operand, fits, at);
        value = expressions.cast(value, fits, at);
      } else {
        value = expressions.cast(value, operand.type, at);
      }
    }
    const single = project(values, [value], ["value"]);
    const distinct: Plan = { node: "distinct", input: single, columns: single.columns, timestamp: -1, order: "none" };
    const marked = project(distinct, [columnOf(distinct, 0), TRUE], ["value", "found"]);
    const left = this.input();
    this.replaceInput({
      node: "join",
      type: "left",
      left,
      right: marked,
      leftKeys: [key],
      rightKeys: [columnOf(marked, 0)],
      columns: [...left.columns, ...marked.columns],
      timestamp: left.timestamp,
      order: left.order,
    });
    return { kind: "column", index: left.columns.length + 1, type: "BOOLEAN" };
  }

  /** A cross join with the one row. No row: nothing matches. */
  scalar(query: Query, names: Names, at: number): Expr {
    const bound = this.bindOne(query, names, at);
    let { plan } = bound;
    if (!isOneRow(plan)) {
      plan = {
        node: "limit",
        input: plan,
        high: { kind: "constant", value: 1n, type: "LONG" },
        columns: plan.columns,
        timestamp: plan.timestamp,
        order: plan.order,
      };
    }
    const left = this.input();
    this.replaceInput({
      node: "join",
      type: "cross",
      left,
      right: plan,
      leftKeys: [],
      rightKeys: [],
      columns: [...left.columns, ...plan.columns],
      timestamp: left.timestamp,
      order: left.order,
    });
    return { kind: "column", index: left.columns.length, type: plan.columns[0].type };
  }
}

const NUMBERS = ["BYTE", "SHORT", "INT", "LONG"];

function implicit(from: string, to: string): boolean {
  if (from === to) return true;
  if (to === "LONG") return NUMBERS.includes(from);
  if (to === "DOUBLE") return from === "FLOAT" || NUMBERS.includes(from);
  return to === "TIMESTAMP" && from === "DATE";
}
