/** Traversals of plans, which all rules use. */
import {
  type AggregateCall,
  type BoundStatement,
  type Expr,
  inputsOf,
  type Plan,
  type SortKey,
  type TimedSides,
  type WindowCall,
} from "../plan.ts";

/** Returns the node with other inputs, of the same number. */
export function withInputs(plan: Plan, inputs: Plan[]): Plan {
  const before = inputsOf(plan);
  if (before.every((input, k) => input === inputs[k])) return plan;
  const [first, second] = inputs;
  return { ...plan, ...(before.length === 2 ? { left: first, right: second } : { input: first }) } as Plan;
}

/** Rebuilds a plan bottom-up. */
export function mapPlan(plan: Plan, change: (plan: Plan) => Plan): Plan {
  return change(withInputs(plan, inputsOf(plan).map((input) => mapPlan(input, change))));
}

export function visitPlan(plan: Plan, visit: (plan: Plan) => void): void {
  visit(plan);
  for (const input of inputsOf(plan)) visitPlan(input, visit);
}

const mapSortKeys = (keys: SortKey[], change: (expr: Expr) => Expr): SortKey[] =>
  keys.map((key) => ({ ...key, expression: change(key.expression) }));
const mapAggregates = (calls: AggregateCall[], change: (expr: Expr) => Expr): AggregateCall[] =>
  calls.map((call) => ({ ...call, args: call.args.map(change) }));
const mapWindows = (calls: WindowCall[], change: (expr: Expr) => Expr): WindowCall[] =>
  calls.map((call) => ({
    ...call,
    args: call.args.map(change),
    partitionBy: call.partitionBy.map(change),
    orderBy: mapSortKeys(call.orderBy, change),
  }));

/** Returns the node with each of its own expressions changed. */
export function mapNodeExpressions(plan: Plan, change: (expr: Expr) => Expr): Plan {
  switch (plan.node) {
    case "scan":
      return plan.predicate === undefined ? plan : { ...plan, predicate: change(plan.predicate) };
    case "filter":
      return { ...plan, predicate: change(plan.predicate) };
    case "project":
      return { ...plan, expressions: plan.expressions.map(change) };
    case "aggregate":
      return { ...plan, keys: plan.keys.map(change), aggregates: mapAggregates(plan.aggregates, change) };
    case "sample":
      return {
        ...plan,
        time: change(plan.time),
        keys: plan.keys.map(change),
        aggregates: mapAggregates(plan.aggregates, change),
      };
    case "latest":
      return { ...plan, time: change(plan.time), keys: plan.keys.map(change) };
    case "sort":
      return { ...plan, keys: mapSortKeys(plan.keys, change) };
    case "limit":
      return { ...plan, low: plan.low === undefined ? undefined : change(plan.low), high: change(plan.high) };
    case "join":
      return {
        ...plan,
        leftKeys: plan.leftKeys.map(change),
        rightKeys: plan.rightKeys.map(change),
        residual: plan.residual === undefined ? undefined : change(plan.residual),
      };
    case "timeJoin":
      return {
        ...plan,
        ...timesOfSides(plan, change),
      };
    case "windowJoin":
      return {
        ...plan,
        ...timesOfSides(plan, change),
        start: { ...plan.start, offset: change(plan.start.offset) },
        end: { ...plan.end, offset: change(plan.end.offset) },
        residual: plan.residual === undefined ? undefined : change(plan.residual),
        aggregates: mapAggregates(plan.aggregates, change),
      };
    case "horizonJoin":
      return {
        ...plan,
        ...timesOfSides(plan, change),
        time: change(plan.time),
      };
    case "unnest":
      return { ...plan, arrays: plan.arrays.map(change) };
    case "window":
      return { ...plan, calls: mapWindows(plan.calls, change) };
    default:
      return plan;
  }
}

/** The node's own expressions. */
export function nodeExpressions(plan: Plan): Expr[] {
  const found: Expr[] = [];
  mapNodeExpressions(plan, (expr) => {
    found.push(expr);
    return expr;
  });
  return found;
}

export function mapExpressions(plan: Plan, change: (expr: Expr) => Expr): Plan {
  return mapPlan(plan, (node) => mapNodeExpressions(node, change));
}

/** Returns the statement with its plan changed. */
export function mapStatement<From, To>(
  statement: BoundStatement<From>,
  change: (plan: From) => To,
): BoundStatement<To> {
  const { plan, statement: inner, ...rest } = statement;
  return {
    ...rest,
    ...plan !== undefined && { plan: change(plan) },
    ...inner !== undefined && { statement: mapStatement(inner, change) },
  };
}

function timesOfSides(
  { leftTime, rightTime, leftKeys, rightKeys }: TimedSides,
  change: (expr: Expr) => Expr,
): Omit<TimedSides, "left" | "right"> {
  return {
    leftTime: change(leftTime),
    rightTime: change(rightTime),
    leftKeys: leftKeys.map(change),
    rightKeys: rightKeys.map(change),
  };
}
