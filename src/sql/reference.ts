/** Generates docs/functions.md, docs/types.md and docs/syntax.md from the catalogues of SQL, for `deno task docs`. */
import { typeNames, typeOf } from "../types/mod.ts";
import { aggregateFunctions } from "./functions/aggregates.ts";
import { arithmeticFunctions } from "./functions/arithmetic.ts";
import { batchAggregateFunctions } from "./functions/batch-aggregates.ts";
import { comparisonFunctions } from "./functions/comparison.ts";
import { conditionalFunctions } from "./functions/conditional.ts";
import { generatorFunctions } from "./functions/generators.ts";
import { type FunctionEntry, FUNCTIONS, isInternal } from "./functions/mod.ts";
import { numericFunctions } from "./functions/numeric.ts";
import { patternFunctions } from "./functions/pattern.ts";
import { statisticsFunctions } from "./functions/statistics.ts";
import { textFunctions } from "./functions/text.ts";
import { timeFunctions } from "./functions/time.ts";
import { timePartFunctions } from "./functions/time-parts.ts";
import { timeStepFunctions } from "./functions/time-steps.ts";
import { windowFunctions } from "./functions/window.ts";
import { grammarText, keywords } from "./grammar.ts";
import { STATEMENTS } from "./statements/mod.ts";
import { clauseWords, reservedWords } from "./token-classes.ts";

const GROUPS: [title: string, entries: readonly FunctionEntry[]][] = [
  ["Operators", [...arithmeticFunctions, ...comparisonFunctions]],
  ["Aggregates", [...aggregateFunctions, ...batchAggregateFunctions, ...statisticsFunctions]],
  ["Window functions", windowFunctions],
  ["Time", [...timeFunctions, ...timeStepFunctions, ...timePartFunctions]],
  ["Numbers", numericFunctions],
  ["Text and patterns", [...textFunctions, ...patternFunctions]],
  ["Conditions", conditionalFunctions],
  ["Sources of rows, and random values", generatorFunctions],
];

const OPERATOR_FORMS: Record<string, string> = {
  neg: "-a",
  is_null: "a IS NULL",
  between: "a BETWEEN low AND high",
  not: "NOT a",
  like: "a LIKE pattern",
  ilike: "a ILIKE pattern",
};

export function functionsPage(): string {
  const grouped = new Set(GROUPS.flatMap(([, entries]) => entries));
  const others = FUNCTIONS.filter((entry) => !grouped.has(entry));
  const lines = [
    "# Functions and operators",
    "",
    "<!-- Made by `deno task docs` from src/sql/functions/: change it there. -->",
    "",
    "All functions that `functions()` lists, by subject. Arguments in brackets are optional, those before `…` can be repeated. The column Types has",
    "the types of the arguments, in order, and behind `→` the type of the result. `/` separates alternatives. If all arguments have the same type,",
    "it is there once; *the same* and *the first* are the type of the arguments and of the first one. *constant* arguments must be known when the",
    "statement is bound. *text* accepts STRING, VARCHAR and SYMBOL, *number* all numbers, *time* DATE, TIMESTAMP and TIMESTAMP_NS, *wide* LONG256,",
    "BINARY, GEOHASH, DECIMAL and arrays, *any* every type, *same* every type, but the same for all. If no type fits exactly, arguments are widened.",
    "",
    "Aggregates ignore nulls, except where their row says otherwise, and every aggregate can be used with `OVER`, without DISTINCT. Sums and averages",
    "of FLOAT and DOUBLE do not depend on the number of threads. But their last digits can change when rows are stored: stored rows are added in",
    "groups of 1,024 or of a segment, and products of two DOUBLE columns as whole numbers, before the sum becomes a DOUBLE. Averages of INT whose",
    "sum exceeds 2^53 can change, too.",
    "",
    "Functions without arguments need no parentheses (`now`, `pi`, `FROM tables`), unless a column or table has that name. Casts are in",
    "[Types](types.md).",
  ];
  for (const [title, entries] of [...GROUPS, ["More", others] as const]) {
    const shown = entries.filter(({ name }) => !isInternal(name) && name !== "keywords");
    lines.push("", `## ${title}`, "", "| | Types | Meaning |", "|---|---|---|");
    for (const row of rowsOf(shown)) lines.push(`| ${row.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`);
  }
  return lines.join("\n") + "\n";
}

/** One row for overloads of the same form. */
function rowsOf(entries: readonly FunctionEntry[]): string[][] {
  const rows = new Map<string, { form: string; types: [string, string][]; summary: string; example?: string }>();
  for (const entry of entries) {
    const form = formOf(entry);
    const key = `${form}\n${entry.summary}`;
    let row = rows.get(key);
    if (row === undefined) rows.set(key, row = { form, types: [], summary: entry.summary });
    row.types.push(typesOf(entry));
    row.example ??= exampleOf(entry);
  }
  return [...rows.values()].map(({ form, types, summary, example }) => [
    code(form),
    shortened(types).join("<br>"),
    summary + (example === undefined ? "" : ` ${example}`),
  ]);
}

function formOf({ name, args, table, window }: FunctionEntry): string {
  if (OPERATOR_FORMS[name] !== undefined) return OPERATOR_FORMS[name];
  const isWord = /^[a-z]/.test(name);
  if (name === "~" && args.length === 1) return "~a";
  if (!isWord || name === "and" || name === "or") return `a ${name.toUpperCase()} b`;
  if (name === "in") return "a IN (…)";
  const list = args.map((arg) => {
    const shown = arg.name + (arg.variadic ? ", …" : "");
    return arg.optional ? `[${shown}]` : shown;
  });
  return `${name}(${list.join(", ")})${window && !table ? " OVER (…)" : ""}`;
}

/** Overloads that differ only in their first type share one line. */
function shortened(types: readonly [takes: string, gives: string][]): string[] {
  const lines = new Map<string, Set<string>>();
  for (const [takes, gives] of types) {
    const [first = "", ...rest] = takes.split(", ");
    const isOneType = rest.every((part) => part === first);
    // Except if another type has the same result.
    const isSame = types.length > 1 && types.every((each) => each[1] !== gives || each[0].split(", ")[0] === gives);
    const end = isSame ? (isOneType ? "the same" : "the first") : gives;
    const key = `${isOneType ? "" : `, ${rest.join(", ")}`} → ${end}`;
    if (!lines.has(key)) lines.set(key, new Set());
    lines.get(key)!.add(first);
  }
  return [...lines].map(([end, firsts]) => `${[...firsts].join(" / ")}${end}`.trim());
}

const SHOWN: Record<string, string> = { SYMBOL_TEXT: "SYMBOL", decimal: "DECIMAL", array: "DOUBLE[]" };

function typesOf({ args, returns, table }: FunctionEntry): [takes: string, gives: string] {
  const plain = (type: string) => SHOWN[type] ?? type;
  const takes = args.map((arg) => plain(arg.type) + (arg.constant ? " *constant*" : "")).join(", ");
  if (table) return [takes, "rows"];
  if (typeof returns === "string") return [takes, plain(returns)];
  if (args.some((arg) => arg.type === "decimal")) return [takes, "DECIMAL"];
  if (args.some((arg) => arg.type === "array") || args[0]?.name === "arrays") return [takes, "DOUBLE[]"];
  const tag = returns(args.map((_, index) => `${index}`));
  if (tag === "0") return [takes, plain(args[0]!.type)];
  const wide = /^(?:GEOHASH|DECIMAL|DOUBLE\[\])/.exec(tag)?.[0];
  return [takes, wide ?? (args.some((arg) => arg.type === "time") ? "time" : "text")];
}

function exampleOf({ examples }: FunctionEntry): string | undefined {
  const example = examples.find((each) => "gives" in each && each.gives !== undefined);
  return example && `${code(example.sql)} is ${code(JSON.stringify(example.gives))}.`;
}

const code = (text: string) => "`" + text.replaceAll("\n", " ") + "`";

/** The dialect's words and functions for an editor. */
export interface LanguageReference {
  functions: {
    name: string;
    /** The form of a call: `count([value])`. */
    form: string;
    /** Argument and result types, one line for each overload. */
    types: string[];
    summary: string;
    example?: string;
    isAggregate: boolean;
    isTable: boolean;
  }[];
  /** Keywords, in lower case. */
  keywords: string[];
  /** Keywords that need double quotes to be names. */
  reserved: string[];
  types: string[];
}

export function languageReference(): LanguageReference {
  const functions = new Map<string, LanguageReference["functions"][number]>();
  for (const entry of FUNCTIONS) {
    const { name, summary, aggregate, table } = entry;
    if (isInternal(name) || !/^[a-z]/.test(name) || OPERATOR_FORMS[name] !== undefined) continue;
    const form = formOf(entry);
    const key = `${form}\n${summary}`;
    let one = functions.get(key);
    if (one === undefined) {
      one = { name, form, types: [], summary, isAggregate: aggregate !== undefined, isTable: table !== undefined };
      functions.set(key, one);
    }
    const [takes, gives] = typesOf(entry);
    one.types.push(`(${takes}) → ${gives}`);
    one.example ??= exampleOf(entry);
  }
  return {
    functions: [...functions.values()],
    keywords: keywords(),
    reserved: reservedWords().map((word) => word.toLowerCase()),
    types: typeNames(),
  };
}

export function typesPage(): string {
  const lines = [
    "# Types",
    "",
    "<!-- Made by `deno task docs` from src/types/registry.ts and src/sql/functions/casts.ts: change it there. -->",
    "",
    "Types of columns. In addition: `DECIMAL(precision, scale)` up to 76 digits (in casts also `NUMERIC`), `GEOHASH(5c)` or `GEOHASH(20b)`, and",
    "arrays such as `DOUBLE[]` and `DOUBLE[][]`.",
    "",
    "| Type | Also spelled | Bytes a row | Has a NULL | Over the PostgreSQL wire |",
    "|---|---|---|---|---|",
  ];
  for (const name of typeNames()) {
    const { width, nullable, pgOid, aliases, layout } = typeOf(name);
    const size = layout === "text"
      ? `${width}, and its bytes`
      : layout === "symbol"
      ? `${width}, and each text once`
      : width;
    lines.push(`| ${name} | ${aliases.join(", ")} | ${size} | ${nullable ? "yes" : "no"} | ${PG_NAMES[pgOid]} |`);
  }
  lines.push(
    "",
    "A type without NULL stores a missing value as 0 or `false`. Times are UTC: DATE in milliseconds, TIMESTAMP in microseconds,",
    "TIMESTAMP_NS in nanoseconds since 1970, from 1677 to 2262. SYMBOL is for texts with few distinct values: it stores a number for each row.",
    "",
    "## Casts",
    "",
    "`CAST(a AS type)`, or `a::type`, converts from the type of each row to those in its second column. Values that cannot be converted are NULL.",
    "`varchar(20)` in a cast is STRING, and the length cuts nothing; columns have no length. `float(1)` to `float(24)` are FLOAT, up to `float(53)` DOUBLE.",
    "",
    "| From | To |",
    "|---|---|",
  );
  const casts = new Map<string, Set<string>>();
  for (const { name, args } of FUNCTIONS) {
    if (!name.startsWith("cast_")) continue;
    const shown = (type: string) => SHOWN[type] ?? type;
    const from = shown(args[0]!.type), to = shown(name.slice("cast_".length));
    if (from === "NULL") continue;
    for (const each of from === "text" ? TEXTS : from === "wide" ? WIDE : [from]) {
      if (!casts.has(each)) casts.set(each, new Set());
      if (each !== to) casts.get(each)!.add(to);
    }
  }
  for (const [from, to] of [...casts].toSorted()) lines.push(`| ${from} | ${[...to].toSorted().join(", ")} |`);
  return lines.join("\n") + "\n";
}

const TEXTS = ["STRING", "VARCHAR", "SYMBOL"];
const WIDE = ["LONG256", "DECIMAL", "GEOHASH", "DOUBLE[]"];

const PG_NAMES: Record<number, string> = {
  16: "bool",
  17: "bytea",
  20: "int8",
  21: "int2",
  23: "int4",
  700: "float4",
  701: "float8",
  1042: "char",
  1043: "varchar",
  1114: "timestamp",
  2950: "uuid",
};

function statementRows(): string[][] {
  return STATEMENTS.flatMap(({ reference, requires }) => {
    if (reference === undefined) return [];
    const { syntax, summary } = reference;
    return [[syntax.split("\n").map(code).join("<br>"), summary, requires.join(", ")]];
  });
}

export function syntaxPage(): string {
  return [
    "# Syntax",
    "",
    "<!-- Made by `deno task docs` from src/sql/statements/ and src/sql/grammar.ts: change it there. -->",
    "",
    "## Statements",
    "",
    "[SQL](sql.md) shows examples. With `acl.enabled=true` a statement needs the permissions of its row, and SELECT on the",
    "columns that it reads.",
    "",
    "| Statement | What it does | Permission |",
    "|---|---|---|",
    ...statementRows().map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`),
    "",
    "## Grammar",
    "",
    "The grammar of statements: words in quotes are keywords, in any case; `?` is at most one, `*` any",
    'number, `+` at least one; `&` and `~` look ahead; `"<name>"` and similar stand for one token. An expression is a list of',
    "operands and operators here. Precedence, from low to high: OR, AND, NOT, equality with LIKE, `~` and IS, `<` and",
    "similar, IN and BETWEEN, `|`, `^`, `&`, `||`, `+ -`, `* / %`, signs, `::` and `[ ]`.",
    "A statement that the grammar accepts may still be refused with an error that says what is not supported.",
    "",
    "```ebnf",
    grammarText(),
    "```",
    "",
    "## Keywords",
    "",
    "Reserved words, which are names only in double quotes:",
    "",
    `${reservedWords().toSorted().map(code).join(" ")}`,
    "",
    "Words that can be names, but aliases of columns only after `AS`:",
    "",
    `${clauseWords().toSorted().map(code).join(" ")}`,
    "",
  ].join("\n");
}
