/** Describes in words what the grammar expected where it stopped, with groups of tokens instead of single tokens. */
import { SqlError } from "../errors.ts";
import type { Token } from "./lexer.ts";

/** `expected`: labels returned by `expectations()`, or other words. */
export function unexpected(token: Token, expected: readonly string[]): SqlError {
  if (expected.length === 0) return new SqlError(`Cannot read the statement: ${found(token)}`, token.at);
  const shown = expected.slice(0, SHOWN_MAX);
  const list = shown.length > 1 ? `${shown.slice(0, -1).join(", ")} or ${shown.at(-1)}` : shown[0];
  const some = expected.length > shown.length ? "for example " : "";
  return new SqlError(`Cannot read the statement: ${found(token)}, expected ${some}${list}`, token.at);
}

const SHOWN_MAX = 4;

export function found({ kind, text }: Token): string {
  switch (kind) {
    case "end":
      return "the statement ends";
    case "semicolon":
      return "the statement ends with ;";
    case "string":
      return `found '${shorten(text)}'`;
    case "quoted":
      return `found "${shorten(text)}"`;
    default:
      return `found ${shorten(text)}`;
  }
}

function shorten(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

/** A label for several tokens. It is shown if all of `needs` are expected, and replaces these and all of `covers`. */
interface Group {
  label: string;
  needs: string[];
  covers?: string[];
}

/** Earlier groups take precedence: a later group sees only the remaining tokens. */
const GROUPS: Group[] = [
  {
    label: "a query",
    needs: ["SELECT", "DECLARE", "WITH"],
    covers: ["(", "a name", "a string", "a variable", "LATERAL"],
  },
  {
    label: "an expression",
    needs: ["CASE", "a number"],
    covers: [
      "a string",
      "a name",
      "a parameter",
      "a variable",
      "a geohash",
      "NULL",
      "TRUE",
      "FALSE",
      "CAST",
      "EXTRACT",
      "TRIM",
      "SUBSTRING",
      "ALL",
      "EXISTS",
      "ARRAY[",
      "TIMESTAMP",
      "TIMESTAMP_NS",
      "DATE",
      "IPV4",
      "UUID",
      "NOT",
      "-",
      "+",
      "~",
      "(",
    ],
  },
  { label: "a table or a query in parentheses", needs: ["a name", "a variable", "("], covers: ["a string", "LATERAL"] },
  {
    label: "an operator",
    needs: ["an operator"],
    covers: [
      "IS",
      "NOT",
      "AND",
      "OR",
      "LIKE",
      "ILIKE",
      "BETWEEN",
      "IN",
      "::",
      "[",
      ".",
      "COLLATE",
      "AT",
      "ESCAPE",
      "OPERATOR",
      "WITHIN",
    ],
  },
  { label: "an alias", needs: ["AS", "a name"], covers: ["a string"] },
  {
    label: "JOIN",
    needs: ["JOIN", "ASOF"],
    covers: ["CROSS", "FULL", "HORIZON", "INNER", "LEFT", "LT", "RIGHT", "SPLICE"],
  },
  {
    label: "another clause",
    needs: ["LIMIT", "UNION"],
    covers: [
      "EXCEPT",
      "INTERSECT",
      "WHERE",
      "PIVOT",
      "GROUP",
      "HAVING",
      "SAMPLE",
      "LATEST",
      "ORDER",
      "WINDOW",
      "OFFSET",
      "FETCH",
      "TO",
      "ALIGN",
    ],
  },
];

/** Keywords that only occur in phrases. */
const PHRASES: Record<string, string> = {
  GROUP: "GROUP BY",
  ORDER: "ORDER BY",
  SAMPLE: "SAMPLE BY",
  LATEST: "LATEST ON",
  PARTITION: "PARTITION BY",
  ",": "a comma",
};

/** Sorts labels: marks and values first, then keywords, then what is allowed almost anywhere. */
function rank(label: string): number {
  if (label === "an alias") return 3;
  if (label === "an operator") return 4;
  if (label === "another clause" || label === "JOIN") return 5;
  if (label === "the end of the statement") return 6;
  return /^(?:an? |\W$)/.test(label) ? 0 : label === "FROM" ? 1 : 2;
}

/** Returns labels for tokens named as by `readable()`. */
export function expectations(tokens: Iterable<string>): string[] {
  const left = new Set(tokens);
  // After a name an opening parenthesis (a call) is always possible, so it is left out.
  if (left.has("an operator") && left.has(".")) left.delete("(");
  const labels: string[] = [];
  for (const { label, needs, covers = [] } of GROUPS) {
    if (!needs.every((token) => left.has(token))) continue;
    for (const token of [...needs, ...covers]) left.delete(token);
    labels.push(label);
  }
  // Where principals are named, GROUP is a word by itself.
  const isPrincipal = left.has("GROUP") && left.has("USER");
  for (const token of left) labels.push(token === "GROUP" && isPrincipal ? token : PHRASES[token] ?? token);
  return labels.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}
