/** For EXPLAIN: the functions of an operator that its kernels leave to others. */
import type { Expr } from "../../sql/plan.ts";
import { type Calls, callsOf } from "./calls.ts";
import type { PlanFacts } from "./facts.ts";
import { exprsOf } from "./grouping.ts";
import type { Grouping, PhysicalPlan, Reading } from "./plan.ts";
import { dictionariesOf, expectedRows, typesOf } from "./reading.ts";

/** Undefined for operators that compute no expressions in kernels of their own. */
export function nodeCalls(physical: PhysicalPlan, facts: PlanFacts): Calls | undefined {
  const { inputs } = physical;
  const over = (reading: Reading, exprs: readonly Expr[]) =>
    callsOf(exprs, typesOf(reading.baseColumns), {
      functions: facts.functions,
      dictionaries: dictionariesOf(reading, facts),
      expectedRows: expectedRows(reading, inputs, facts),
    });
  const ofGrouping = ({ node, way }: Grouping): Calls | undefined => {
    switch (way.kind) {
      case "kernel":
        return over(way.reading, exprsOf(way.spec));
      case "batches": {
        const exprs = [...node.keys, ...node.aggregates.flatMap((call) => call.args)];
        const { batch, perSymbol } = callsOf(exprs, typesOf(node.input.columns), { ...facts, expectedRows: 0 });
        const names = node.aggregates.map((call) => facts.functions.resolve(call.function).entry)
          .filter(({ aggregate }) => aggregate?.kind !== "fused").map((entry) => entry.name);
        return { batch: [...new Set([...batch, ...names])], perSymbol };
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
    case "pipeline": {
      const { reading } = physical;
      return over(reading, [...reading.predicates, ...reading.exprs]);
    }
    case "aggregate":
      return ofGrouping(physical.grouping);
    case "sample":
      return physical.way.kind === "buckets" ? ofGrouping(physical.way.groups) : undefined;
    case "sort": {
      const { way } = physical;
      return way.kind === "best by morsels"
        ? over(way.reading, [...way.reading.predicates, ...way.reading.exprs])
        : undefined;
    }
    case "join": {
      const { left, leftKeys } = physical;
      return over(left, [...left.predicates, ...leftKeys]);
    }
    default:
      return undefined;
  }
}
