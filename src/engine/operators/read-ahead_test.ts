import assert from "node:assert/strict";
import { createRegistry } from "../../sql/functions/mod.ts";
import type { Column, Plan } from "../../sql/plan.ts";
import type { QueryContext } from "../contract.ts";
import { createQueryMemory } from "../memory.ts";
import type { PlanFacts } from "../physical/mod.ts";
import {
  assertRows,
  endsClean,
  fn,
  lit,
  operatorOf,
  over,
  randomFrom,
  type Row,
  rowsOf,
  storedRows,
  testContext,
  threeParticipants,
} from "../testing.ts";

const TYPES = ["SYMBOL", "INT", "VARCHAR", "DOUBLE", "LONG256"];
const COLUMNS: Column[] = TYPES.map((type) => ({ name: type, type }));
const c = (type: string) => ({ kind: "column" as const, index: TYPES.indexOf(type), type });
const SEGMENT_ROWS = 300, SEGMENTS = 60;
const TOO_LONG = 20_000_000;
/** The row whose text would be too long. */
const FAILING_ROW = 40 * SEGMENT_ROWS + 7;

const alone = testContext(1 << 28, { functions: createRegistry() });
const random = randomFrom(3);
const rows = Array.from({ length: SEGMENTS * SEGMENT_ROWS }, (_, k): Row => {
  const n = random() % 100, maybe = (value: Row[number]) => random() % 9 === 0 ? null : value;
  return [maybe(`s${n % 7}`), k === FAILING_ROW ? TOO_LONG : n, maybe(`text ${n}`), maybe(n / 8), BigInt(n) << 70n];
});
const { node, source } = storedRows(COLUMNS, rows, alone, SEGMENT_ROWS);

const filtered = (below: Plan = node): Plan =>
  over({ node: "filter", predicate: fn(">", "BOOLEAN", c("INT"), lit(70, "INT")), columns: COLUMNS }, below);
const projected = (below: Plan, more: Plan["columns"] = []): Plan => {
  const padded = fn("rpad", "VARCHAR", c("VARCHAR"), c("INT"));
  return over({
    node: "project",
    expressions: [...COLUMNS.map(({ type }) => c(type)), ...more.map(() => padded)],
    columns: [...COLUMNS, ...more],
  }, below);
};
const limited = (below: Plan, limit: number): Plan =>
  over({ node: "limit", high: lit(BigInt(limit), "LONG"), columns: below.columns }, below);

function ahead(more: Partial<QueryContext> = {}) {
  const context: QueryContext & PlanFacts = {
    ...alone,
    sources: [source],
    thresholds: { helpFromRows: 1, ahead: { stageMsMin: 0, keepingShareMax: Infinity, stageShareMax: Infinity } },
    ...more,
  };
  const three = threeParticipants(context)!, stages: number[] = [];
  const parallel: QueryContext["parallel"] = {
    ...three,
    run: (task, data, count) => {
      stages.push(count);
      return three.run(task, data, count);
    },
  };
  return { context: { ...context, parallel }, stages };
}

function batchSizes(plan: Plan, context: QueryContext & PlanFacts): number[] {
  const operator = operatorOf(plan, context), sizes = [];
  for (let batch = operator.next(); batch !== undefined; batch = operator.next()) sizes.push(batch.rowCount);
  operator.close();
  return sizes;
}

const inOrder = { ...alone, sources: [source] };

Deno.test("rows that are read ahead come in the same batches", () => {
  const { context, stages } = ahead();
  assertRows(rowsOf(filtered(), context), rowsOf(filtered(), inOrder));
  assert.deepEqual(stages, [SEGMENTS - 2]);
  assert.deepEqual(batchSizes(filtered(), context), batchSizes(filtered(), inOrder));
  endsClean(context);
});

Deno.test("all rows of a scan in descending order, computed ahead", () => {
  const { context, stages } = ahead(), reversed: Plan = { ...node, reverse: true };
  const plan = filtered(reversed);
  assertRows(rowsOf(plan, context), rowsOf(plan, inOrder));
  assert.ok(stages.length > 0);
  endsClean(context);
});

Deno.test("an error is raised only if the rows before it are too few for a limit", () => {
  const { context, stages } = ahead(), padded = projected(filtered(), [{ name: "padded", type: "VARCHAR" }]);
  const before = rows.slice(0, FAILING_ROW).filter(([, int]) => (int as number) > 70).length;
  const plan = limited(padded, before - 5);
  assertRows(rowsOf(plan, context), rowsOf(plan, inOrder));
  assert.ok(stages.length > 0);
  assert.throws(() => rowsOf(limited(padded, before + 1), context), /the text would be too long/);
  endsClean(context);
});

Deno.test("with any memory, rows are read ahead as well as by one thread", () => {
  const plan = projected(filtered()), outcomes = new Set<string>();
  const outcomeOf = (context: QueryContext & PlanFacts) => {
    try {
      return rowsOf(plan, context);
    } catch (error) {
      assert.match((error as Error).message, /the query's memory limit/);
      return undefined;
    }
  };
  for (let limitBytes = 16 << 10; limitBytes <= 8 << 20; limitBytes = 2 * limitBytes) {
    const memory = createQueryMemory(alone.heap, limitBytes), expected = outcomeOf({ ...inOrder, memory });
    const helped = { ...ahead().context, memory }, parallel = threeParticipants(helped);
    const found = outcomeOf({ ...helped, parallel });
    if (expected === undefined) assert.equal(found, undefined);
    else assertRows(found!, expected);
    outcomes.add(expected === undefined ? "too little" : "enough");
    assert.equal(memory.usedBytes, 0);
  }
  assert.equal(outcomes.size, 2);
});

Deno.test("a cancel ends a stage", () => {
  let polls = 0;
  const { context, stages } = ahead({
    poll: () => {
      if (++polls > 20) throw new Error("cancelled");
    },
  });
  assert.throws(() => rowsOf(projected(filtered()), context), /cancelled/);
  assert.ok(stages.length <= 1);
  endsClean(context);
});
