/**
 * Random tables, and random queries over them in two spellings: ours, and DuckDB's with our null semantics made explicit.
 * Our logic is two-valued: null equals null, `<` and `>` with a null are false, `<=` and `>=` are true for two nulls.
 */
import fc from "../../src/properties.ts";

export interface Row {
  k: number | null;
  l: number | null;
  d: number | null;
  s: string | null;
}
export interface Twins {
  ours: string;
  duck: string;
}

/** Small domains, so that keys match, groups have several rows, and sums of quarters are exact. */
const row: fc.Arbitrary<Row> = fc.record({
  k: fc.option(fc.integer({ min: -2, max: 3 }), { freq: 4 }),
  l: fc.option(fc.constantFrom(-3_000_000_000, -7, 0, 1, 2, 5, 40_000_000_000), { freq: 4 }),
  d: fc.option(fc.integer({ min: -12, max: 12 }).map((n) => n / 4), { freq: 4 }),
  s: fc.option(fc.constantFrom("", "a", "b", "ab", "Zoë"), { freq: 4 }),
});
export const rows = fc.array(row, { maxLength: 40 });

/** Numeric columns of a table: id (the row's number), and those of `Row`. */
const NUMBERS = ["id", "k", "l", "d"] as const;
const COLUMNS = [...NUMBERS, "s"] as const;
type Column = (typeof COLUMNS)[number];

const same = (text: string): Twins => ({ ours: text, duck: text });

const quoted = (text: string): string => `'${text}'`;
const constants: Record<Column, fc.Arbitrary<string>> = {
  id: fc.integer({ min: 0, max: 20 }).map(String),
  k: fc.integer({ min: -2, max: 3 }).map(String),
  l: fc.constantFrom("0", "2", "40000000000"),
  d: fc.integer({ min: -12, max: 12 }).map((n) => (n / 4).toFixed(2)),
  s: fc.constantFrom("ab", "", "Zoë").map(quoted),
};

type Operator = "=" | "!=" | "<" | "<=" | ">" | ">=";

function comparison(operator: Operator, x: string, y: string): Twins {
  const ours = `${x} ${operator} ${y}`;
  switch (operator) {
    case "=":
      return { ours, duck: `(${x} is not distinct from ${y})` };
    case "!=":
      return { ours, duck: `(${x} is distinct from ${y})` };
    case "<":
    case ">":
      return { ours, duck: `coalesce(${ours}, false)` };
    default:
      return { ours, duck: `coalesce(${ours}, ${x} is null and ${y} is null)` };
  }
}

const operator = fc.constantFrom<Operator>("=", "!=", "<", "<=", ">", ">=");
const column = fc.constantFrom(...COLUMNS);

const test: fc.Arbitrary<Twins> = fc.oneof(
  column.chain((name) => fc.tuple(operator, constants[name]).map(([op, value]) => comparison(op, name, value))),
  fc.tuple(operator, fc.constantFrom(["k", "id"], ["l", "k"], ["d", "k"], ["l", "id"])).map(([op, [x, y]]) =>
    comparison(op, x, y)
  ),
  column.map((name) => same(`${name} is null`)),
  column.map((name) => same(`${name} is not null`)),
  column.chain((name) =>
    fc.tuple(fc.array(constants[name], { minLength: 1, maxLength: 3 }), fc.boolean()).map(([items, negated]): Twins => {
      const inside = `${name} in (${items.join(", ")})`;
      const duck = `coalesce(${inside}, false)`;
      return negated ? { ours: `${name} not in (${items.join(", ")})`, duck: `not ${duck}` } : { ours: inside, duck };
    })
  ),
  fc.tuple(constants.k, constants.k).map(([a, b]): Twins => ({
    ours: `k between ${a} and ${b}`,
    duck: `coalesce(k between least(${a}, ${b}) and greatest(${a}, ${b}), false)`,
  })),
  fc.constantFrom("%b", "a%", "%", "_").map((pattern): Twins => ({
    ours: `s like '${pattern}'`,
    duck: `coalesce(s like '${pattern}', false)`,
  })),
);

export const condition: fc.Arbitrary<Twins> = fc.letrec<{ tree: Twins }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small" },
    test,
    fc.tuple(tie("tree"), fc.constantFrom("and", "or"), tie("tree")).map(([a, word, b]): Twins => ({
      ours: `(${a.ours} ${word} ${b.ours})`,
      duck: `(${a.duck} ${word} ${b.duck})`,
    })),
  ),
})).tree;

/** Nulls of INT and text come first in ascending order here, those of DOUBLE last. */
function ordered(name: Column, descending: boolean): Twins {
  const nullsFirst = (name === "d") === descending;
  const direction = descending ? " desc" : "";
  return { ours: name + direction, duck: `${name}${direction} nulls ${nullsFirst ? "first" : "last"}` };
}

const AGGREGATES = [
  "count(*)",
  "count(k)",
  "count(s)",
  "count(distinct k)",
  "sum(k)",
  "sum(l)",
  "sum(d)",
  "min(k)",
  "max(l)",
  "min(d)",
  "max(s)",
  "avg(d)",
  "avg(k)",
  "sum(k * 2 + id)",
];
const KEYS = ["k", "s", "l", "d", "k + 1", "d * 2", "id % 3", "k is null", "length(s)"];
const WINDOWS = [
  "row_number() over (order by id)",
  "row_number() over (partition by s order by id desc)",
  "rank() over (order by abs(id % 4))",
  "dense_rank() over (partition by s order by id % 3)",
  "lag(l) over (order by id)",
  "lag(d, 2) over (partition by k order by id)",
  "lead(l, 1) over (partition by s order by id)",
  "lag(d) ignore nulls over (order by id)",
  "sum(d) over (partition by k order by id)",
  "sum(d) over (order by id rows between 2 preceding and current row)",
  "avg(d) over (partition by s order by id rows between 3 preceding and 1 preceding)",
  "count(d) over (order by id rows between 4 preceding and current row)",
  "count(*) over (partition by s)",
  "max(d) over (order by id rows between unbounded preceding and current row)",
  "min(l) over (partition by s order by id rows between 2 preceding and current row)",
  "max(l) over (partition by k)",
  "first_value(d) over (partition by s order by id)",
  "last_value(l) over (order by id rows between 3 preceding and 1 preceding)",
];

/** DuckDB's spellings where they differ: `length` of a null is -1 here. */
const DUCK_WORDS: Record<string, string> = {
  "length(s)": "coalesce(length(s), -1)",
  "lag(d) ignore nulls over (order by id)": "lag(d ignore nulls) over (order by id)",
};
const twins = (text: string): Twins => ({ ours: text, duck: DUCK_WORDS[text] ?? text });

const where = fc.option(condition, { nil: same("true") });

function both(parts: TemplateStringsArray, ...values: Twins[]): Twins {
  const spell = (of: keyof Twins) => parts.reduce((text, part, i) => text + values[i - 1][of] + part);
  return { ours: spell("ours"), duck: spell("duck") };
}

function list(items: Twins[]): Twins {
  return { ours: items.map((x) => x.ours).join(", "), duck: items.map((x) => x.duck).join(", ") };
}
const aliased = (items: string[], letter: string): Twins[] =>
  items.map((item, i) => both`${twins(item)} ${same(letter + i)}`);

const filtered = where.map((test) => both`select id, k, l, d, s from a where ${test}`);
const grouped = fc.tuple(
  fc.uniqueArray(fc.constantFrom(...KEYS), { minLength: 1, maxLength: 2 }),
  fc.uniqueArray(fc.constantFrom(...AGGREGATES), { minLength: 1, maxLength: 4 }),
  where,
).map(([keys, aggregates, test]) =>
  both`select ${list([...aliased(keys, "k"), ...aliased(aggregates, "v")])} from a where ${test} group by ${
    list(keys.map(twins))
  }`
);
const totals = fc.tuple(fc.uniqueArray(fc.constantFrom(...AGGREGATES), { minLength: 1, maxLength: 5 }), where)
  .map(([aggregates, test]) => both`select ${list(aliased(aggregates, "v"))} from a where ${test}`);
const distinct = fc.tuple(fc.uniqueArray(fc.constantFrom(...KEYS), { minLength: 1, maxLength: 3 }), where)
  .map(([keys, test]) => both`select distinct ${list(aliased(keys, "k"))} from a where ${test}`);
const joined = fc.tuple(
  fc.constantFrom("join", "left join", "right join", "full join"),
  fc.uniqueArray(fc.constantFrom("k", "s", "l", "id"), { minLength: 1, maxLength: 2 }),
  where,
  fc.boolean(),
).map(([kind, keys, test, isGrouped]) => {
  const on = {
    ours: keys.map((key) => `x.${key} = y.${key}`).join(" and "),
    duck: keys.map((key) => `x.${key} is not distinct from y.${key}`).join(" and "),
  };
  const from = both`from (select * from a where ${test}) x ${same(kind)} b y on ${on}`;
  if (!isGrouped) return both`select x.id, y.id other, y.d ${from}`;
  return both`select y.s, count(*) n, count(x.id) c, min(x.id) low, max(y.id) high ${from} group by y.s`;
});
const windowed = fc.tuple(fc.uniqueArray(fc.constantFrom(...WINDOWS), { minLength: 1, maxLength: 3 }), where)
  .map(([calls, test]) => both`select id, ${list(aliased(calls, "w"))} from a where ${test}`);
const sets = fc.tuple(
  fc.constantFrom("union all", "union", "except", "intersect"),
  fc.constantFrom("k", "l", "d", "s", "k, s"),
  where,
).map(([word, columns, test]) =>
  both`select ${same(columns)} from a where ${test} ${same(word)} select ${same(columns)} from b`
);
/** The id makes the order total, so that the first rows are the same for both. */
const top = fc.tuple(column, fc.boolean(), fc.integer({ min: 0, max: 12 }), where)
  .map(([name, descending, count, test]) =>
    both`select id, k, d from a where ${test} order by ${ordered(name, descending)}, id limit ${same(String(count))}`
  );
const nested = fc.tuple(condition, where).map(([outer, inner]) =>
  both`select s, count(*) n from (select id, k, l * 2 l, d, s from a where ${inner}) q where ${outer} group by s`
);
const branches = fc.tuple(condition, condition).map(([first, second]) =>
  both`select id, case when ${first} then k when ${second} then id end c from a`
);

export const query: fc.Arbitrary<Twins> = fc.oneof(
  filtered,
  grouped,
  totals,
  distinct,
  joined,
  windowed,
  sets,
  top,
  nested,
  branches,
);
