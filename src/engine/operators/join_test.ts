import assert from "node:assert/strict";
import { createRegistry } from "../../sql/functions/mod.ts";
import type { Column, Expr, JoinNode, Plan } from "../../sql/plan.ts";
import type { Value } from "../../types/mod.ts";
import type { Operator } from "../contract.ts";
import {
  agg,
  col,
  endsClean,
  fn,
  joinColumns,
  keyValues,
  lit,
  onThreads,
  over,
  randomFrom,
  type Row,
  RowsInput,
  rowsOf,
  storedRows,
  testContext,
} from "../testing.ts";

const functions = createRegistry();

const COLUMNS = joinColumns("SYMBOL", "SHORT", "CHAR");
const c = (index: number, offset = 0) => col(offset + index, COLUMNS[index].type);

/** Column 3 is a key with a wide range, column 8 the row's number. */
function makeRows(rowCount: number, seed: number, distinct: number): Row[] {
  const random = randomFrom(seed);
  return Array.from({ length: rowCount }, (_, row): Row => {
    const n = random() % distinct, maybe = (value: Value): Value => (random() % 9 === 0 ? null : value);
    return [
      maybe(`s${n}`),
      n,
      ...keyValues(n, random, maybe),
      maybe(String.fromCharCode(65 + n % 60)),
      BigInt(row),
    ];
  });
}

/** Pairs by nested loops, in the guaranteed order. */
function joined(type: string, left: readonly Row[], right: readonly Row[], on: (l: Row, r: Row) => boolean): Row[] {
  const rows: Row[] = [], matched = new Set<Row>();
  const noRow: Row = COLUMNS.map(({ type }) => (type === "SHORT" ? 0 : null));
  for (const l of left) {
    let has = false;
    for (const r of right) {
      if (!on(l, r)) continue;
      has = true;
      matched.add(r);
      rows.push([...l, ...r]);
    }
    if (!has && (type === "left" || type === "full")) rows.push([...l, ...noRow]);
  }
  if (type === "right" || type === "full") { for (const r of right) if (!matched.has(r)) rows.push([...noRow, ...r]); }
  return rows;
}

const equal = (keys: readonly number[]) => (l: Row, r: Row) =>
  keys.every((k) => l[k] === r[k] || (l[k] === 0 && r[k] === 0));

function joinOf(
  type: JoinNode["type"],
  left: Operator | Plan,
  right: Operator | Plan,
  leftKeys: Expr[],
  rightKeys: Expr[],
  residual?: Expr,
): Plan {
  const columns = [...left.columns, ...right.columns];
  return over({ node: "join", type, leftKeys, rightKeys, residual, columns }, left, right);
}

const text = (rows: readonly Row[]) =>
  rows.map((row) => row.map((v) => (typeof v === "bigint" ? `${v}n` : v === 0 ? "0" : String(v))).join(" "));

/** A context with a stored left table with these rows. */
function withTable(rows: Row[], segmentRows: number, isParallel = false) {
  const alone = testContext(1 << 28, { functions });
  const table = storedRows(COLUMNS, rows, alone, segmentRows, true);
  const context = onThreads({ ...alone, sources: [table.source] }, isParallel);
  return { context, scan: (predicate?: Expr): Plan => ({ ...table.node, predicate }) };
}

const KEY_SETS = [[0], [1], [2], [3], [4], [5], [6], [7], [1, 2], [0, 3], [5, 6, 1]];

Deno.test("a join of a stored table equals nested loops, for every kind of key, in the order of left and right rows", () => {
  const left = makeRows(700, 1, 60), right = makeRows(180, 2, 80), unique = new Map<Value, Row>();
  for (const row of makeRows(300, 3, 80)) unique.set(row[1], row);
  const { context, scan } = withTable(left, 90);
  for (const type of ["inner", "left", "right", "full"] as const) {
    for (const keys of KEY_SETS) {
      for (const rows of [right, [...unique.values()]]) {
        const exprs = keys.map((k) => c(k));
        const made = rowsOf(
          joinOf(type, scan(), new RowsInput(COLUMNS, rows, context, 70), exprs, exprs),
          context,
        );
        assert.deepEqual(text(made), text(joined(type, left, rows, equal(keys))), `${type} by ${keys}`);
      }
    }
  }
  endsClean(context);
});

Deno.test("filters, computed keys and residual conditions of a join", () => {
  const left = makeRows(600, 4, 40), right = makeRows(150, 5, 50), width = COLUMNS.length;
  const { context, scan } = withTable(left, 80);
  const filter = fn(">", "BOOLEAN", c(2), lit(-5, "INT"));
  const kept = left.filter((row) => row[2] !== null && Number(row[2]) > -5);
  const residual = fn("<", "BOOLEAN", c(8), fn("*", "LONG", c(8, width), lit(4n, "LONG")));
  const less = (l: Row, r: Row) => (l[8] as bigint) < (r[8] as bigint) * 4n;
  const upper = (index: number) => fn("upper", "STRING", c(index));
  const plus = (index: number) => fn("+", "LONG", c(index), lit(1n, "LONG"));
  for (const type of ["inner", "left", "right", "full"] as const) {
    for (
      const [keys, exprs] of [[[5], [c(5)]], [[3], [plus(3)]], [[5, 1], [upper(5), c(1)]], [[2], [c(2)]]] as const
    ) {
      for (const more of [undefined, residual]) {
        const on = (l: Row, r: Row) => equal(keys)(l, r) && (more === undefined || less(l, r));
        const input = new RowsInput(COLUMNS, right, context, 70);
        const made = rowsOf(joinOf(type, scan(filter), input, [...exprs], [...exprs], more), context);
        assert.deepEqual(text(made), text(joined(type, kept, right, on)), `${type} by ${keys}, ${more?.kind}`);
      }
    }
    const made = rowsOf(
      joinOf(type, scan(filter), new RowsInput(COLUMNS, right, context), [], [], residual),
      context,
    );
    assert.deepEqual(text(made), text(joined(type, kept, right, less)), `${type} by no key`);
  }
  const none = rowsOf(
    joinOf("left", scan(filter), new RowsInput(COLUMNS, [], context), [c(3)], [c(3)]),
    context,
  );
  assert.deepEqual(text(none), text(joined("left", kept, [], () => false)));
  endsClean(context);
});

Deno.test("more pairs than fit into a batch, also for one left row", () => {
  const left = makeRows(5, 6, 1), right = makeRows(70_000, 7, 1);
  const { context, scan } = withTable(left, 5);
  for (const type of ["inner", "full"] as const) {
    for (const residual of [undefined, fn("!=", "BOOLEAN", c(8, COLUMNS.length), lit(65_536n, "LONG"))]) {
      let n = 0n;
      const operator = joinOf(type, scan(), new RowsInput(COLUMNS, right, context), [c(1)], [c(1)], residual);
      const made = rowsOf(
        over({ node: "project", expressions: [c(8), c(8, 9)], columns: [COLUMNS[8], COLUMNS[8]] }, operator),
        context,
      );
      const of = residual === undefined ? 70_000n : 69_999n;
      for (const [l, r] of made) {
        if (l === null) continue;
        const at = n % of;
        assert.equal(l, n / of);
        assert.equal(r, residual !== undefined && at >= 65_536n ? at + 1n : at);
        n++;
      }
      assert.equal(n, 5n * of);
      assert.equal(made.length, Number(n) + (type === "full" && residual !== undefined ? 1 : 0));
    }
  }
  endsClean(context);
});

Deno.test("groups over joins of joins are the same on one thread and on three, and in the order of first rows", () => {
  const left = makeRows(3_000, 8, 90), middle = makeRows(120, 9, 90), right = makeRows(100, 10, 90);
  const width = COLUMNS.length;
  const pairs = joined("left", joined("inner", left, middle, equal([2])), right, (l, r) => l[0] === r[0]);
  const groups = new Map<string, [Value, Value, bigint, bigint]>();
  for (const row of pairs) {
    const key = `${row[width]}|${row[2 * width + 1]}`;
    const group = groups.get(key) ?? [row[width], row[2 * width + 1], 0n, 0n];
    groups.set(key, [group[0], group[1], group[2] + 1n, group[3] + (row[8] as bigint)]);
  }
  for (const isParallel of [false, true]) {
    const { context, scan } = withTable(left, 70, isParallel);
    const first = joinOf("inner", scan(), new RowsInput(COLUMNS, middle, context), [c(2)], [c(2)]);
    const second = joinOf("left", first, new RowsInput(COLUMNS, right, context), [c(0)], [c(0)]);
    const keys = [col(width, "SYMBOL"), col(2 * width + 1, "SHORT")];
    const aggregates = [agg("count", "LONG"), agg("sum", "LONG", c(8))];
    const columns = [...keys, ...aggregates].map(({ type }, k) => ({ name: `g${k}`, type }));
    const made = rowsOf(over({ node: "aggregate", keys, aggregates, columns }, second), context);
    assert.deepEqual(text(made), text([...groups.values()].map((group) => [...group])));
    endsClean(context);
  }
});

Deno.test("unmatched rows follow all pairs, in joins of joins of every type, on one thread and on three", () => {
  const left = makeRows(900, 21, 120), middle = makeRows(240, 22, 130), right = makeRows(180, 23, 140);
  const width = COLUMNS.length, TYPES = ["inner", "left", "right", "full"] as const;
  const residual = fn("<", "BOOLEAN", c(8), fn("*", "LONG", c(8, width), lit(3n, "LONG")));
  const less = (l: Row, r: Row) => (l[8] as bigint) < (r[8] as bigint) * 3n;
  const none: Row = COLUMNS.map(() => null);
  for (const isParallel of [false, true]) {
    const { context, scan } = withTable(left, 70, isParallel);
    const filter = fn("<", "BOOLEAN", c(8), lit(700n, "LONG")), kept = left.slice(0, 700);
    for (const first of TYPES) {
      for (const second of TYPES) {
        const isLess = first === "left" || first === "full";
        const below = joined(first, kept, middle, (l, r) => equal([2])(l, r) && (!isLess || less(l, r)));
        // Here left rows have twice as many columns as `joined` puts before unmatched rows.
        const expected = joined(second, below, right, (l, r) => l[width] === r[0])
          .map((row) => row.length < 3 * width ? [...none, ...none, ...row.slice(width)] : row)
          .map((row) => [row[8], row[width + 8], row[2 * width + 8], row[0], row[width], row[2 * width + 5], 1n]);
        const inner = joinOf(
          first,
          scan(filter),
          new RowsInput(COLUMNS, middle, context, 90),
          [c(2)],
          [c(2)],
          isLess ? residual : undefined,
        );
        const input = new RowsInput(COLUMNS, right, context, 80);
        const outer = joinOf(second, inner, input, [col(width, "SYMBOL")], [c(0)]);
        const numbers = [c(8), c(8, width), c(8, 2 * width)], texts = [c(0), col(width, "SYMBOL"), c(5, 2 * width)];
        const keys = [...numbers, ...texts], aggregates = [agg("count", "LONG")];
        const columns = [...keys, ...aggregates].map(({ type }, k) => ({ name: `g${k}`, type }));
        const groups = rowsOf(over({ node: "aggregate", keys, aggregates, columns }, outer), context);
        assert.deepEqual(text(groups), text(expected), `${first}, ${second}`);
      }
    }
    endsClean(context);
  }
});

Deno.test("a filter over a left join sees its nulls, and segments without keys in range are not read", () => {
  const left = Array.from({ length: 1_000 }, (_, n): Row => [...makeRows(1, n, 9)[0].slice(0, 8), BigInt(n)]);
  const right = makeRows(30, 11, 9).map((row, n): Row => [...row.slice(0, 8), BigInt(400 + n)]);
  const { context, scan } = withTable(left, 100);
  const read: number[] = [];
  [...context.sources[0].segments].forEach((segment, s) =>
    segment.chunks.forEach((chunk) => {
      const { address } = chunk!;
      Object.defineProperty(chunk, "address", { get: () => (read.push(s), address) });
    })
  );
  const run = (type: "inner" | "left", predicate?: Expr) => {
    read.length = 0;
    const join = joinOf(type, scan(), new RowsInput(COLUMNS, right, context), [c(8)], [c(8)]);
    return rowsOf(
      predicate ? over({ node: "filter", predicate, columns: join.columns }, join) : join,
      context,
    );
  };
  const pairs = joined("left", left, right, equal([8]));
  assert.deepEqual(text(run("inner")), text(pairs.filter((row) => row[17] !== null)));
  assert.deepEqual([...new Set(read)], [4]);
  const isNull = fn("=", "BOOLEAN", col(17, "LONG"), lit(null, "LONG"));
  assert.deepEqual(text(run("left", isNull)), text(pairs.filter((row) => row[17] === null)));
  assert.equal(new Set(read).size, 10);
  endsClean(context);
});

Deno.test("ORDER BY … LIMIT over a join, on one thread and on three, with ties in the order of rows", () => {
  const left = makeRows(210_000, 12, 500), unique = new Map<Value, Row>();
  for (const row of makeRows(900, 13, 520)) unique.set(row[1], row);
  const right = [...unique.values()], width = COLUMNS.length;
  const expected = left.flatMap((row) => {
    const partner = unique.get(row[1]);
    return partner === undefined ? [] : [[row[5], partner[0], row[8]] as Row];
  });
  const rank = (value: Value) => (value === null ? "" : ` ${value}`);
  expected.sort((a, b) => {
    const [x, y] = [rank(a[1]), rank(b[1])], [s, t] = [rank(a[0]), rank(b[0])];
    return x !== y ? (x < y ? -1 : 1) : s !== t ? (s < t ? 1 : -1) : Number(BigInt(a[2]!) - BigInt(b[2]!));
  });
  for (const isParallel of [false, true]) {
    const { context, scan } = withTable(left, 30_000, isParallel);
    const join = joinOf("inner", scan(), new RowsInput(COLUMNS, right, context), [c(1)], [c(1)]);
    const exprs = [c(5), c(0, width), c(8)], columns = exprs.map(({ type }, k) => ({ name: `p${k}`, type }));
    const projected = over({ node: "project", expressions: exprs, columns }, join);
    const keys = [{ expression: col(1, "SYMBOL"), descending: false }, {
      expression: col(0, "VARCHAR"),
      descending: true,
    }];
    const made = rowsOf(over({ node: "sort", keys, limit: 1_500, columns }, projected), context);
    assert.deepEqual(text(made), text(expected.slice(0, 1_500)));
    endsClean(context);

    // Unmatched rows have the greatest numbers here.
    const more = [...right, ...makeRows(3_000, 15, 9).map((row, n): Row => [row[0], 1_000 + n, ...row.slice(2)])];
    const full = joinOf("full", scan(), new RowsInput(COLUMNS, more, context), [c(1)], [c(1)]);
    const numbers = [c(1, width), c(8)], named = numbers.map(({ type }, k) => ({ name: `n${k}`, type }));
    const top = {
      node: "sort",
      keys: [{ expression: col(0, "SHORT"), descending: true }, { expression: col(1, "LONG"), descending: false }],
      limit: 3_030,
      columns: named,
    };
    const best = rowsOf(over(top, over({ node: "project", expressions: numbers, columns: named }, full)), context);
    const pairs = left.filter((row) => unique.has(row[1])).map((row): Row => [row[1], row[8]]);
    const leftKeys = new Set(left.map((row) => row[1]));
    const rows = [...pairs, ...more.filter((row) => !leftKeys.has(row[1])).map((row): Row => [row[1], null])];
    rows.sort((a, b) => Number(b[0]) - Number(a[0]));
    assert.deepEqual(best, rows.slice(0, 3_030));
    endsClean(context);
  }
});

Deno.test("symbols join by codes of one dictionary and of two, and as texts if a dictionary is large", () => {
  const rows = makeRows(400, 14, 60);
  const { context, scan } = withTable(rows, 70);
  const self = rowsOf(joinOf("left", scan(), scan(), [c(0)], [c(0)]), context);
  assert.deepEqual(text(self), text(joined("left", rows, rows, equal([0]))));
  endsClean(context);

  const columns: Column[] = [{ name: "s", type: "SYMBOL" }, { name: "n", type: "LONG" }];
  const many = Array.from({ length: 70_000 }, (_, n): Row => [n === 40 ? null : `t${n}`, BigInt(n)]);
  const alone = testContext(1 << 28, { functions });
  const table = storedRows(columns, many, alone, 65_536), sources = [table.source], both = { ...alone, sources };
  const few = Array.from({ length: 90 }, (_, n): Row => [n % 30 === 0 ? null : `t${n}`, BigInt(-n)]);
  const on = (l: Row, r: Row) => l[0] === r[0];
  for (const isRight of [true, false]) {
    const predicate = fn("<", "BOOLEAN", col(1, "LONG"), lit(50n, "LONG"));
    const long = { ...table.node, predicate },
      short = new RowsInput(columns, few, both);
    const [left, right] = isRight ? [short, long] : [long, short];
    const made = rowsOf(joinOf("inner", left, right, [col(0, "SYMBOL")], [col(0, "SYMBOL")]), both);
    const cut = many.slice(0, 50);
    assert.deepEqual(text(made), text(isRight ? joined("inner", few, cut, on) : joined("inner", cut, few, on)));
  }
  endsClean(alone);
});
