/** Invariants of every plan. Tests check them after binding and after each rule. */
import { assert } from "../../assert.ts";
import { walk } from "../binder/plans.ts";
import { type Column, type Expr, inputsOf, type Plan } from "../plan.ts";
import { visitPlan } from "./nodes.ts";

/** @throws if a column index is out of range, or a type differs from the input's. */
export function verifyPlan(plan: Plan): void {
  for (const input of inputsOf(plan)) verifyPlan(input);
  assert(plan.timestamp >= -1 && plan.timestamp < plan.columns.length, `${plan.node}: timestamp ${plan.timestamp}`);
  const types = (columns: readonly Column[]): string => columns.map((column) => column.type).join(",");
  switch (plan.node) {
    case "scan": {
      const width = plan.columnIds.length + (plan.rowId ? 1 : 0);
      assert(plan.columns.length === width, `scan: ${plan.columns.length} columns of ${width}`);
      if (plan.predicate !== undefined) verifyExpr(plan.predicate, plan.columns, "scan");
      return;
    }
    case "values":
      for (const row of plan.rows) assert(row.length === plan.columns.length, "values: a row of another width");
      return;
    case "filter":
      verifyExpr(plan.predicate, plan.input.columns, "filter");
      assert(plan.predicate.type === "BOOLEAN", "filter: not BOOLEAN");
      assert(types(plan.columns) === types(plan.input.columns), "filter: its columns differ from its input's");
      return;
    case "sort":
    case "limit":
    case "distinct":
    case "latest":
      assert(types(plan.columns) === types(plan.input.columns), `${plan.node}: its columns differ from its input's`);
      if (plan.node === "sort") { for (const key of plan.keys) verifyExpr(key.expression, plan.input.columns, "sort"); }
      if (plan.node === "limit") verifyAll(plan.low === undefined ? [plan.high] : [plan.low, plan.high], [], "limit");
      if (plan.node === "latest") {
        for (const key of [plan.time, ...plan.keys]) verifyExpr(key, plan.input.columns, "latest");
      }
      return;
    case "project":
      verifyAll(plan.expressions, plan.input.columns, "project");
      assert(
        types(plan.columns) === plan.expressions.map((e) => e.type).join(","),
        "project: its columns differ from its expressions",
      );
      return;
    case "aggregate":
    case "sample": {
      verifyAll([...plan.keys, ...plan.aggregates.flatMap((call) => call.args)], plan.input.columns, plan.node);
      if (plan.node === "sample") verifyExpr(plan.time, plan.input.columns, "sample");
      const output = [
        ...(plan.node === "sample" ? [plan.time.type] : []),
        ...plan.keys.map((key) => key.type),
        ...plan.aggregates.map((call) => call.type),
      ];
      assert(types(plan.columns) === output.join(","), `${plan.node}: its columns differ from its keys and aggregates`);
      if (plan.node === "sample") {
        assert(plan.fills.length === 0 || plan.fills.length === plan.aggregates.length, "sample: fills");
      }
      return;
    }
    case "join":
    case "timeJoin": {
      verifyAll(plan.leftKeys, plan.left.columns, "join");
      verifyAll(plan.rightKeys, plan.right.columns, "join");
      assert(plan.leftKeys.length === plan.rightKeys.length, "join: keys");
      const both = [...plan.left.columns, ...plan.right.columns];
      assert(types(plan.columns) === types(both), "join: its columns differ from those of both sides");
      if (plan.node === "join" && plan.residual !== undefined) verifyExpr(plan.residual, both, "join");
      if (plan.node === "timeJoin") {
        verifyExpr(plan.leftTime, plan.left.columns, "timeJoin");
        verifyExpr(plan.rightTime, plan.right.columns, "timeJoin");
      }
      return;
    }
    case "windowJoin":
    case "horizonJoin": {
      const { left, right } = plan, both = [...left.columns, ...right.columns];
      verifyAll([...plan.leftKeys, plan.leftTime], left.columns, plan.node);
      verifyAll([...plan.rightKeys, plan.rightTime], right.columns, plan.node);
      assert(plan.leftKeys.length === plan.rightKeys.length, `${plan.node}: keys`);
      if (plan.node === "windowJoin") {
        verifyAll([plan.start.offset, plan.end.offset], left.columns, plan.node);
        verifyAll(plan.aggregates.flatMap((call) => call.args), both, plan.node);
        if (plan.residual !== undefined) verifyExpr(plan.residual, both, plan.node);
      } else verifyExpr(plan.time, left.columns, plan.node);
      const own = plan.node === "windowJoin"
        ? plan.aggregates.map((call) => call.type)
        : ["LONG", plan.time.type, ...right.columns.map((column) => column.type)];
      const output = [...left.columns.map((column) => column.type), ...own];
      assert(types(plan.columns) === output.join(","), `${plan.node}: its columns differ from its left side's and own`);
      return;
    }
    case "unnest": {
      verifyAll(plan.arrays, plan.input.columns, "unnest");
      const own = [...plan.arrays.map(() => "DOUBLE"), ...(plan.ordinality ? ["LONG"] : [])];
      const output = [...plan.input.columns.map((column) => column.type), ...own];
      assert(types(plan.columns) === output.join(","), "unnest: its columns differ from its input's and elements");
      return;
    }
    case "window":
      for (const call of plan.calls) {
        verifyAll(
          [...call.args, ...call.partitionBy, ...call.orderBy.map((key) => key.expression)],
          plan.input.columns,
          "window",
        );
      }
      assert(
        types(plan.columns) === [
          types(plan.input.columns),
          ...plan.calls.map((call) => call.type),
        ].filter((part) => part !== "").join(","),
        "window: columns",
      );
      return;
    case "set":
    case "recursion":
      assert(
        types(plan.left.columns) === types(plan.columns) && types(plan.right.columns) === types(plan.columns),
        `${plan.node}: sides differ`,
      );
      return;
  }
}

/** @throws if a scan has no id, or shares it with another one. Holds after the rules. */
export function verifyScanIds(plan: Plan): void {
  const ids = new Set<number>();
  visitPlan(plan, (node) => {
    if (node.node !== "scan") return;
    assert(node.id >= 0 && !ids.has(node.id), `scan of ${node.tableName}: id ${node.id}`);
    ids.add(node.id);
  });
}

function verifyAll(expressions: readonly Expr[], columns: readonly Column[], node: string): void {
  for (const e of expressions) verifyExpr(e, columns, node);
}

function verifyExpr(expr: Expr, columns: readonly Column[], node: string): void {
  walk(expr, (e) => {
    assert(e.kind !== "placeholder", `${node}: contains a placeholder of the binder`);
    if (e.kind !== "column") return;
    assert(e.index >= 0 && e.index < columns.length, `${node}: no column ${e.index} of ${columns.length}`);
    assert(e.type === columns[e.index]!.type, `${node}: column ${e.index} is ${columns[e.index]!.type}, not ${e.type}`);
  });
}
