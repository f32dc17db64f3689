/** For EXPLAIN: the functions of an operator that its kernels do not compute. */
import type { Column, Expr } from "../../sql/plan.ts";
import { type Calls, callsOf } from "./calls.ts";
import type { PlanFacts } from "./facts.ts";
import { exprsOf } from "./grouping.ts";
import type { Grouping, PhysicalPlan, Reading } from "./plan.ts";
import { dictionariesOf, expectedRows, typesOf } from "./reading.ts";

/** Undefined for operators without expressions. */
export function nodeCalls(physical: PhysicalPlan, facts: PlanFacts): Calls | undefined {
  const { inputs } = physical;
  const over = (reading: Reading, exprs: readonly Expr[], predicates = reading.predicates) =>
    callsOf(exprs, predicates, typesOf(reading.baseColumns), {
      functions: facts.functions,
      dictionaries: dictionariesOf(reading, facts),
      expectedRows: expectedRows(reading, inputs, facts),
    });
  /** Calls over the batches of an input. */
  const ofBatches = (columns: readonly Column[], exprs: readonly Expr[]) =>
    callsOf(exprs, [], typesOf(columns), { functions: facts.functions, expectedRows: 0 });
  const ofGrouping = ({ node, way }: Grouping): Calls | undefined => {
    switch (way.kind) {
      case "kernel": {
        const { predicates } = way.spec, exprs = exprsOf({ ...way.spec, predicates: [] });
        return over(way.reading, exprs, predicates);
      }
      case "batches": {
        const calls = ofBatches(node.input.columns, [...node.keys, ...node.aggregates.flatMap((call) => call.args)]);
        const names = node.aggregates.map((call) => facts.functions.resolve(call.function).entry)
          .filter(({ aggregate }) => aggregate?.kind !== "fused").map((entry) => entry.name);
        return { ...calls, batch: [...new Set([...calls.batch, ...names])] };
      }
      case "values":
        return ofGrouping(way.groups);
      case "pairs":
        return ofGrouping(way.pairs);
      case "bits":
      case "side by side":
        return undefined;
    }
  };
  switch (physical.operator) {
    case "pipeline":
      return over(physical.reading, physical.reading.exprs);
    case "aggregate":
      return ofGrouping(physical.grouping);
    case "sample":
      return physical.way.kind === "runs" ? undefined : ofGrouping(physical.way.groups);
    case "sort": {
      const { way, node } = physical;
      if (way.kind === "best by morsels") return over(way.reading, way.reading.exprs);
      return way.kind === "top" ? undefined : ofBatches(node.input.columns, node.keys.map((key) => key.expression));
    }
    case "join": {
      if (physical.way !== "splice") return over(physical.left, physical.leftKeys);
      const { left, leftKeys } = physical.node;
      return ofBatches(left.columns, leftKeys);
    }
    case "time join": {
      const { left, leftKeys } = physical.node;
      return ofBatches(left.columns, leftKeys);
    }
    case "window join":
    case "horizon join": {
      const { left, leftKeys } = physical.node;
      return ofBatches(left.columns, leftKeys);
    }
    case "latest":
      switch (physical.way.kind) {
        case "by symbol":
          return undefined;
        case "groups":
          return ofGrouping(physical.way.groups);
        default:
          return ofBatches(physical.node.input.columns, physical.node.keys);
      }
    case "window":
      return ofBatches(
        physical.node.input.columns,
        physical.node.calls.flatMap((call) => [
          ...call.args,
          ...call.partitionBy,
          ...call.orderBy.map((key) => key.expression),
        ]),
      );
    case "unnest":
      return ofBatches(physical.node.input.columns, physical.node.arrays);
    default:
      return undefined;
  }
}
