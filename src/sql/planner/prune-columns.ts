/** Rule: nodes output only columns that nodes above read, and scans read only needed columns. */
import { columnsRead, remap } from "../binder/plans.ts";
import type { Expr, HorizonJoinNode, Plan, TimedSides, WindowJoinNode } from "../plan.ts";
import { mapNodeExpressions } from "./nodes.ts";

/** New indices of a node's columns. Removed columns have no entry. */
type Moves = Map<number, number>;

export function pruneColumns(plan: Plan): Plan {
  return prune(plan, new Set(plan.columns.keys())).plan;
}

function prune(plan: Plan, wanted: Set<number>): { plan: Plan; moves: Moves } {
  switch (plan.node) {
    case "scan": {
      const needed = new Set(wanted);
      if (plan.predicate !== undefined) columnsRead(plan.predicate, needed);
      // The timestamp is needed to omit rows outside the intervals.
      if (plan.intervals !== undefined && plan.timestamp >= 0) needed.add(plan.timestamp);
      // The row id is the last column and has no column id.
      const last = plan.columns.length - 1;
      if (plan.rowId) needed.add(last);
      const kept = order(needed);
      const moves = movesOf(kept);
      return {
        moves,
        plan: {
          ...plan,
          columns: kept.map((index) => plan.columns[index]!),
          columnIds: kept.filter((index) => !plan.rowId || index !== last).map((index) => plan.columnIds[index]!),
          predicate: plan.predicate === undefined ? undefined : moved(plan.predicate, moves),
          ...timestampOf(plan, moves),
        },
      };
    }
    case "parquet": {
      const kept = order(wanted);
      const moves = movesOf(kept);
      return {
        moves,
        plan: {
          ...plan,
          columns: kept.map((index) => plan.columns[index]!),
          fileColumns: kept.map((index) => plan.fileColumns[index]!),
          ...timestampOf(plan, moves),
        },
      };
    }
    case "spooled":
    case "values":
    case "metadata":
    case "files":
    case "sequence":
    case "working":
      return unchanged(plan);
    case "project": {
      const kept = order(wanted);
      const moves = movesOf(kept);
      const expressions = kept.map((index) => plan.expressions[index]!);
      const input = prune(plan.input, reads(expressions));
      return {
        moves,
        plan: {
          ...plan,
          input: input.plan,
          expressions: expressions.map((e) => moved(e, input.moves)),
          columns: kept.map((index) => plan.columns[index]!),
          ...timestampOf(plan, moves),
        },
      };
    }
    case "filter":
    case "sort":
    case "limit":
    case "latest": {
      const own: Expr[] = plan.node === "filter"
        ? [plan.predicate]
        : plan.node === "sort"
        ? plan.keys.map((key) => key.expression)
        : plan.node === "latest"
        ? [plan.time, ...plan.keys]
        : [];
      const input = prune(plan.input, reads(own, wanted));
      return through(plan, input);
    }
    case "distinct": {
      const input = prune(plan.input, new Set(plan.columns.keys()));
      return through(plan, input);
    }
    case "aggregate":
    case "sample": {
      const first = plan.node === "sample" ? 1 + plan.keys.length : plan.keys.length;
      // Keys affect the rows; unused aggregates need not be computed.
      // With FILL, every aggregate affects the rows too.
      const fills = plan.node === "sample" && plan.fills.length > 0;
      const kept = plan.aggregates.map((_, i) => i).filter((i) => fills || wanted.has(first + i));
      const aggregates = kept.map((i) => plan.aggregates[i]!);
      const own = [
        ...plan.keys,
        ...aggregates.flatMap((call) => call.args),
        ...(plan.node === "sample" ? [plan.time] : []),
      ];
      const input = prune(plan.input, reads(own));
      const moves: Moves = new Map();
      for (let i = 0; i < first; i++) moves.set(i, i);
      kept.forEach((i, ordinal) => moves.set(first + i, first + ordinal));
      const columns = [...plan.columns.slice(0, first), ...kept.map((i) => plan.columns[first + i]!)];
      const narrowed = plan.node === "sample"
        ? {
          ...plan,
          aggregates,
          columns,
          fills: plan.fills.length === 0 ? [] : kept.map((i) => plan.fills[i]!),
          input: input.plan,
        }
        : { ...plan, aggregates, columns, input: input.plan };
      return { moves, plan: mapNodeExpressions(narrowed, (e) => moved(e, input.moves)) };
    }
    case "join":
    case "timeJoin":
      return pruneJoin(plan, wanted);
    case "windowJoin":
      return pruneWindowJoin(plan, wanted);
    case "horizonJoin":
      return pruneHorizonJoin(plan, wanted);
    case "window": {
      const width = plan.input.columns.length;
      const kept = plan.calls.map((_, i) => i).filter((i) => wanted.has(width + i));
      const calls = kept.map((i) => plan.calls[i]!);
      const own = calls.flatMap((
        call,
      ) => [...call.args, ...call.partitionBy, ...call.orderBy.map((key) => key.expression)]);
      const ofInput = [...wanted].filter((index) => index < width);
      // A RANGE frame depends on the timestamp.
      if (plan.timestamp >= 0 && plan.timestamp < width) ofInput.push(plan.timestamp);
      const input = prune(plan.input, reads(own, ofInput));
      const moves: Moves = new Map(input.moves);
      const newWidth = input.plan.columns.length;
      kept.forEach((i, ordinal) => moves.set(width + i, newWidth + ordinal));
      if (calls.length === 0) return { plan: input.plan, moves };
      const columns = [...input.plan.columns, ...kept.map((i) => plan.columns[width + i]!)];
      const narrowed: Plan = { ...plan, input: input.plan, calls, columns, ...timestampOf(plan, moves) };
      return { moves, plan: mapNodeExpressions(narrowed, (e) => moved(e, input.moves)) };
    }
    case "unnest": {
      const width = plan.input.columns.length;
      const input = prune(plan.input, reads(plan.arrays, [...wanted].filter((index) => index < width)));
      const own = plan.columns.slice(width), first = input.plan.columns.length;
      const moves: Moves = new Map(input.moves);
      own.forEach((_, i) => moves.set(width + i, first + i));
      const columns = [...input.plan.columns, ...own];
      const narrowed: Plan = { ...plan, input: input.plan, columns, ...timestampOf(plan, moves) };
      return { moves, plan: mapNodeExpressions(narrowed, (e) => moved(e, input.moves)) };
    }
    case "recursion":
    case "set": {
      const all = new Set(plan.columns.keys());
      if (plan.node === "recursion" || plan.operator !== "union all") {
        return unchanged({ ...plan, left: whole(plan.left, all), right: whole(plan.right, all) });
      }
      const kept = order(wanted);
      return {
        moves: movesOf(kept),
        plan: {
          ...plan,
          left: exactly(plan.left, kept),
          right: exactly(plan.right, kept),
          columns: kept.map((index) => plan.columns[index]!),
          timestamp: -1,
        },
      };
    }
  }
}

function pruneJoin(
  plan: Extract<Plan, { node: "join" | "timeJoin" }>,
  wanted: Set<number>,
): { plan: Plan; moves: Moves } {
  const width = plan.left.columns.length;
  const residual = plan.node === "join" && plan.residual !== undefined ? columnsRead(plan.residual) : new Set<number>();
  const all = [...wanted, ...residual];
  const times = plan.node === "timeJoin" ? [[plan.leftTime], [plan.rightTime]] : [[], []];
  const left = prune(plan.left, reads([...plan.leftKeys, ...times[0]!], all.filter((index) => index < width)));
  const right = prune(
    plan.right,
    reads([...plan.rightKeys, ...times[1]!], all.filter((index) => index >= width).map((index) => index - width)),
  );
  const newWidth = left.plan.columns.length;
  const moves: Moves = new Map(left.moves);
  for (const [from, to] of right.moves) moves.set(from + width, to + newWidth);
  const columns = [...left.plan.columns, ...right.plan.columns];
  const keys = {
    left: left.plan,
    right: right.plan,
    leftKeys: plan.leftKeys.map((e) => moved(e, left.moves)),
    rightKeys: plan.rightKeys.map((e) => moved(e, right.moves)),
    columns,
    ...timestampOf(plan, moves),
  };
  if (plan.node === "join") {
    return {
      moves,
      plan: { ...plan, ...keys, residual: plan.residual === undefined ? undefined : moved(plan.residual, moves) },
    };
  }
  return {
    moves,
    plan: {
      ...plan,
      ...keys,
      leftTime: moved(plan.leftTime, left.moves),
      rightTime: moved(plan.rightTime, right.moves),
    },
  };
}

function pruneWindowJoin(plan: WindowJoinNode, wanted: Set<number>): { plan: Plan; moves: Moves } {
  const width = plan.left.columns.length;
  const kept = plan.aggregates.map((_, i) => i).filter((i) => wanted.has(width + i));
  const ofLeft = [...wanted].filter((index) => index < width);
  if (kept.length === 0) return prune(plan.left, new Set(ofLeft));
  const aggregates = kept.map((i) => plan.aggregates[i]!);
  const ofBoth = [...aggregates.flatMap((call) => call.args), ...(plan.residual === undefined ? [] : [plan.residual])];
  const both = [...reads(ofBoth)];
  const left = prune(
    plan.left,
    reads([...plan.leftKeys, plan.leftTime, plan.start.offset, plan.end.offset], [
      ...ofLeft,
      ...both.filter((index) => index < width),
    ]),
  );
  const right = prune(
    plan.right,
    reads(
      [...plan.rightKeys, plan.rightTime],
      both.filter((index) => index >= width).map((index) => index - width),
    ),
  );
  const newWidth = left.plan.columns.length, moves: Moves = new Map(left.moves), inputs: Moves = new Map(left.moves);
  kept.forEach((i, ordinal) => moves.set(width + i, newWidth + ordinal));
  for (const [from, to] of right.moves) inputs.set(from + width, to + newWidth);
  return {
    moves,
    plan: {
      ...plan,
      ...movedSides(plan, left, right),
      start: { ...plan.start, offset: moved(plan.start.offset, left.moves) },
      end: { ...plan.end, offset: moved(plan.end.offset, left.moves) },
      residual: plan.residual === undefined ? undefined : moved(plan.residual, inputs),
      aggregates: aggregates.map((call) => ({ ...call, args: call.args.map((arg) => moved(arg, inputs)) })),
      columns: [...left.plan.columns, ...kept.map((i) => plan.columns[width + i]!)],
      ...timestampOf(plan, moves),
    },
  };
}

/** Both sides, and their times and keys over what is left of the columns. */
function movedSides(
  { leftTime, rightTime, leftKeys, rightKeys }: TimedSides,
  left: { plan: Plan; moves: Moves },
  right: { plan: Plan; moves: Moves },
): TimedSides {
  return {
    left: left.plan,
    right: right.plan,
    leftTime: moved(leftTime, left.moves),
    rightTime: moved(rightTime, right.moves),
    leftKeys: leftKeys.map((e) => moved(e, left.moves)),
    rightKeys: rightKeys.map((e) => moved(e, right.moves)),
  };
}

function pruneHorizonJoin(plan: HorizonJoinNode, wanted: Set<number>): { plan: Plan; moves: Moves } {
  const width = plan.left.columns.length, first = width + 2;
  const left = prune(
    plan.left,
    reads([...plan.leftKeys, plan.leftTime, plan.time], [...wanted].filter((index) => index < width)),
  );
  const right = prune(
    plan.right,
    reads(
      [...plan.rightKeys, plan.rightTime],
      [...wanted].filter((index) => index >= first).map((index) => index - first),
    ),
  );
  const newWidth = left.plan.columns.length, moves: Moves = new Map(left.moves);
  for (const own of [0, 1]) moves.set(width + own, newWidth + own);
  for (const [from, to] of right.moves) moves.set(from + first, to + newWidth + 2);
  return {
    moves,
    plan: {
      ...plan,
      ...movedSides(plan, left, right),
      time: moved(plan.time, left.moves),
      columns: [...left.plan.columns, ...plan.columns.slice(width, first), ...right.plan.columns],
    },
  };
}

/** Nodes that output their input's columns. */
function through(
  plan: Extract<Plan, { node: "filter" | "sort" | "limit" | "latest" | "distinct" }>,
  input: { plan: Plan; moves: Moves },
): { plan: Plan; moves: Moves } {
  const changed = { ...plan, input: input.plan, columns: input.plan.columns, ...timestampOf(plan, input.moves) };
  return { moves: input.moves, plan: mapNodeExpressions(changed, (e) => moved(e, input.moves)) };
}

/** Keeps all columns at their positions. */
function whole(plan: Plan, all: Set<number>): Plan {
  return exactly(plan, [...all]);
}

/** Exactly these columns in this order: inputs of a set operation must agree by position. */
function exactly(plan: Plan, kept: number[]): Plan {
  const pruned = prune(plan, new Set(kept));
  const ordinals = kept.map((index) => pruned.moves.get(index)!);
  const { columns } = pruned.plan;
  if (ordinals.length === columns.length && ordinals.every((ordinal, i) => ordinal === i)) return pruned.plan;
  return {
    node: "project",
    input: pruned.plan,
    expressions: ordinals.map((index) => ({ kind: "column", index, type: columns[index]!.type })),
    columns: ordinals.map((index) => columns[index]!),
    timestamp: -1,
    order: "none",
  };
}

function unchanged(plan: Plan): { plan: Plan; moves: Moves } {
  return { plan, moves: new Map(plan.columns.map((_, index) => [index, index])) };
}

function reads(expressions: Expr[], also: Iterable<number> = []): Set<number> {
  const set = new Set(also);
  for (const e of expressions) columnsRead(e, set);
  return set;
}

function order(wanted: Set<number>): number[] {
  return [...wanted].sort((a, b) => a - b);
}

function movesOf(kept: number[]): Moves {
  return new Map(kept.map((index, ordinal) => [index, ordinal]));
}

/** If the timestamp is removed, the order by it is unknown. */
function timestampOf(plan: Plan, moves: Moves): { timestamp: number; order: Plan["order"] } {
  const timestamp = moves.get(plan.timestamp) ?? -1;
  return { timestamp, order: timestamp < 0 ? "none" : plan.order };
}

function moved(e: Expr, moves: Moves): Expr {
  return remap(e, (index) => moves.get(index)!);
}
