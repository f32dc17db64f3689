/**
 * Statements near those of the conformance cases. Most mutations keep a statement valid, so that it is bound, planned and run: a
 * literal, a function, an operator or a clause is exchanged for one of its kind, an expression or the whole is wrapped. One in five
 * breaks the text, which tries the parser.
 */
import { FUNCTIONS, isInternal } from "../../src/sql/functions/mod.ts";
import { broken, WORD } from "./breakage.ts";
import type { Random } from "./random.ts";

/** A statement as words, of which some are white space. */
type Words = string[];
/** Words [from, to) that are an expression. */
interface Span {
  from: number;
  to: number;
}

/** A statement near `sql`, perhaps with a part of `other`. */
export function mutated(random: Random, sql: string, other: string): string {
  if (random.below(5) === 0) return broken(random, sql, other);
  let text = sql;
  // A mutation that finds nothing to change leaves the text.
  for (let changes = 1 + random.below(2), tries = 0; changes > 0 && tries < 20; tries++) {
    const next = random.of(MUTATIONS)(random, text);
    if (next === undefined || next === text) continue;
    text = next;
    changes--;
  }
  return text;
}

type Mutation = (random: Random, sql: string) => string | undefined;

const wordsOf = (sql: string): Words => sql.match(WORD) ?? [];
const isName = (word: string | undefined): boolean => word !== undefined && /^[A-Za-z_]/.test(word);
const isQuery = (sql: string): boolean => /^\s*(?:select|with)\b/i.test(sql);

/** Another one of `list` in the place of a word that `pattern` takes. */
function exchanged(pattern: RegExp, choices: (word: string) => readonly string[]): Mutation {
  return (random, sql) => {
    const words = wordsOf(sql);
    const places = words.flatMap((word, at) => pattern.test(word) ? [at] : []);
    if (places.length === 0) return undefined;
    const at = random.of(places);
    words[at] = random.of(choices(words[at]));
    return words.join("");
  };
}

// Literals

const NUMBERS = [
  "0",
  "1",
  "2",
  "3",
  "7",
  "10",
  "100",
  "65537",
  "2147483647",
  "9223372036854775807",
  "0.5",
  "1e9",
  "1e-9",
  "null",
];
const TIMES = [
  "'2024-01-01'",
  "'1970-01-01T00:00:00Z'",
  "'2024-02-29T23:59:59.999999Z'",
  "'1969-12-31T23:59:59'",
  "'9999-12-31'",
  "'2024-01;2d'",
];
const UNITS = ["'h'", "'d'", "'M'", "'y'", "'s'", "'m'", "'w'", "'u'"];
const TEXTS = ["''", "'a'", "'abc'", "'1'", "'%a_'", "'äöü€😀'", "'Europe/Berlin'", "null", `'${"x".repeat(300)}'`];

const literals = exchanged(/^(?:\d|')/, (word) => {
  if (/^\d/.test(word)) return NUMBERS;
  if (/^'\d{4}-/.test(word)) return TIMES;
  return /^'[a-zA-Z]'$/.test(word) ? UNITS : TEXTS;
});

const durations = exchanged(
  /^\d+[a-zA-Z]$/,
  () => ["1s", "1m", "7m", "1h", "12h", "1d", "2w", "1M", "1y", "100T", "3U"],
);

// Names

/** Functions by the types of their arguments: of one list, each fits where another one did. */
const BY_SIGNATURE = new Map<string, string[]>();
const SIGNATURES = new Map<string, string[]>();
for (const { name, args, aggregate, window, table } of FUNCTIONS) {
  if (isInternal(name) || !/^\w+$/.test(name) || ["and", "or", "not", "like", "ilike"].includes(name)) continue;
  const types = args.filter(({ optional }) => !optional).map(({ type, constant }) => constant ? `=${type}` : type);
  const kind = window ? "window" : aggregate ? "aggregate" : table ? "table" : "scalar";
  const signature = `${kind} ${types.join()}`;
  BY_SIGNATURE.set(signature, [...BY_SIGNATURE.get(signature) ?? [], name]);
  SIGNATURES.set(name, [...SIGNATURES.get(name) ?? [], signature]);
}

const functions: Mutation = (random, sql) => {
  const words = wordsOf(sql);
  const calls = words.flatMap((word, at) => words[at + 1] === "(" && SIGNATURES.has(word.toLowerCase()) ? [at] : []);
  if (calls.length === 0) return undefined;
  const at = random.of(calls);
  words[at] = random.of(BY_SIGNATURE.get(random.of(SIGNATURES.get(words[at].toLowerCase())!))!);
  return words.join("");
};

const KINDS = [
  ["=", "!=", "<", "<=", ">", ">=", "<>"],
  ["+", "-", "*", "/", "%"],
  ["and", "or"],
  ["inner", "left", "right", "full", "asof", "lt", "splice"],
  ["asc", "desc"],
  ["prev", "linear", "null", "none"],
  ["rows", "range"],
  ["like", "ilike"],
  ["union", "intersect", "except"],
];
const operators: Mutation = (random, sql) => {
  const words = wordsOf(sql);
  const kindOf = (word: string) => KINDS.find((kind) => kind.includes(word.toLowerCase()));
  const places = words.flatMap((word, at) => kindOf(word) !== undefined && words[at + 1] !== "(" ? [at] : []);
  if (places.length === 0) return undefined;
  const at = random.of(places);
  words[at] = random.of(kindOf(words[at])!);
  return words.join("");
};

// Expressions

/** Contents of an item that is not an expression by itself. */
const NO_EXPRESSION =
  /^(?:as|from|select|order|by|asc|desc|over|values|separator|distinct|within|partition|rows|range|interval|fill|filter)$/i;

/** Arguments of calls, and what a select list shows. */
function expressionsOf(words: Words): Span[] {
  const spans: Span[] = [];
  /** Where the list at hand began its last item; undefined where no list of expressions is. */
  const open: (number | undefined)[] = [];
  let item: number | undefined;
  const end = (at: number) => {
    if (item === undefined) return;
    let from = item, to = at;
    while (from < to && /^\s/.test(words[from])) from++;
    while (to > from && /^\s/.test(words[to - 1])) to--;
    const part = words.slice(from, to);
    if (part.length > 0 && part.every((word) => !NO_EXPRESSION.test(word) && word !== "*")) {
      spans.push({ from, to: withoutAlias(words, from, to) });
    }
  };
  words.forEach((word, at) => {
    if (word === "(") {
      open.push(item);
      item = isName(words[at - 1]) && !/^(?:in|values|from|join|over|by|as|exists)$/i.test(words[at - 1])
        ? at + 1
        : undefined;
    } else if (word === ")") {
      end(at);
      item = open.pop();
    } else if (word === ",") {
      end(at);
      if (item !== undefined) item = at + 1;
    } else if (/^select$/i.test(word)) item = at + 1;
    else if (/^(?:from|where|limit|union|order|group|sample)$/i.test(word)) {
      end(at);
      item = undefined;
    }
  });
  end(words.length);
  return spans;
}

function withoutAlias(words: Words, from: number, to: number): number {
  const isAliased = to - from >= 3 && isName(words[to - 1]) && /^\s/.test(words[to - 2]) &&
    /^(?:[\w']|\)|\]|")/.test(words[to - 3]) && !/^(?:and|or|not|is|like|in|end|null)$/i.test(words[to - 1]) &&
    !/^(?:and|or|not|is|like|in|case|when|then|else)$/i.test(words[to - 3]);
  return isAliased ? to - 2 : to;
}

const WRAPPED = [
  (e: string) => `(${e})`,
  (e: string) => `coalesce(${e}, ${e})`,
  (e: string) => `nullif(${e}, ${e})`,
  (e: string) => `case when (${e}) is null then null else ${e} end`,
  (e: string) => `case when 1 = 0 then ${e} end`,
  (e: string) => `-(${e})`,
  (e: string) => `not (${e})`,
  (e: string) => `cast(${e} as string)`,
  (e: string) => `cast(${e} as long)`,
  (e: string) => `cast(${e} as double)`,
  (e: string) => `cast(${e} as timestamp)`,
  (e: string) => `cast(cast(${e} as varchar) as symbol)`,
  (e: string) => `((${e}) + 1)`,
  (e: string) => `((${e}) = (${e}))`,
  (e: string) => `((${e}) || 'x')`,
];

const wrappedExpression: Mutation = (random, sql) => {
  const words = wordsOf(sql), spans = expressionsOf(words);
  if (spans.length === 0) return undefined;
  const { from, to } = random.of(spans);
  words.splice(from, to - from, random.of(WRAPPED)(words.slice(from, to).join("")));
  return words.join("");
};

/** One expression of the statement in the place of another one. */
const copiedExpression: Mutation = (random, sql) => {
  const words = wordsOf(sql), spans = expressionsOf(words);
  if (spans.length < 2) return undefined;
  const { from, to } = random.of(spans), source = random.of(spans);
  words.splice(from, to - from, ...words.slice(source.from, source.to));
  return words.join("");
};

// Clauses and whole statements

const TAILS = ["limit 1", "limit 0", "limit -2", "limit 1, 3", "limit -3, -1", "order by 1", "order by 1 desc limit 2"];

const withTail: Mutation = (random, sql) => isQuery(sql) ? `${sql} ${random.of(TAILS)}` : undefined;

const WHOLES = [
  (q: string) => `select * from (${q})`,
  (q: string) => `select count() from (${q})`,
  (q: string) => `select distinct * from (${q})`,
  (q: string) => `with q as (${q}) select * from q`,
  (q: string) => `with q as (${q}) select * from q cross join q as r limit 5`,
  (q: string) => `select * from (${q}) order by 1, 2`,
  (q: string) => `select row_number() over () n, * from (${q})`,
  (q: string) => `(${q}) union all (${q})`,
  (q: string) => `(${q}) except (${q})`,
  (q: string) => `select x, q.* from long_sequence(2) cross join (${q}) q`,
  (q: string) => `explain ${q}`,
  (q: string) => `create table if not exists made as (${q} limit 3)`,
];

const wrappedWhole: Mutation = (random, sql) => isQuery(sql) && sql.length < 5_000 ? random.of(WHOLES)(sql) : undefined;

const CONDITIONS = ["1 = 1", "1 = 0", "null", "x > 0", "not false", "ts > '2024'", "1 in (select 1)", "true or false"];

/** Another condition, or one more; or the last clause is left out. */
const clause: Mutation = (random, sql) => {
  const where = /\bwhere\b/i.exec(sql);
  if (where === null) {
    const place = /\b(?:sample by|latest on|group by|order by|limit)\b/i.exec(sql);
    if (!isQuery(sql) || !/\bfrom\b/i.test(sql) || /[()]/.test(sql.slice(place?.index ?? sql.length))) return undefined;
    const at = place?.index ?? sql.length;
    return `${sql.slice(0, at)} where ${random.of(CONDITIONS)} ${sql.slice(at)}`;
  }
  const last = [...sql.matchAll(/\b(?:order by|limit|fill|align to)\b/gi)].at(-1)?.index;
  if (last !== undefined && random.below(2) === 0 && !sql.slice(last).includes(")")) return sql.slice(0, last);
  const at = where.index + where[0].length;
  return `${sql.slice(0, at)} (${random.of(CONDITIONS)}) ${random.of(["and", "or"])} ${sql.slice(at)}`;
};

const MUTATIONS: readonly Mutation[] = [
  literals,
  literals,
  durations,
  functions,
  functions,
  operators,
  operators,
  wrappedExpression,
  wrappedExpression,
  copiedExpression,
  withTail,
  wrappedWhole,
  wrappedWhole,
  clause,
];
