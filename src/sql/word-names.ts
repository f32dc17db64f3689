/** Recognizes reserved words that are used as names at positions where nothing else is possible. */
import { isMark, isWord, type Token } from "./lexer.ts";

/** Words that are followed by a name. */
const BEFORE_NAMES = ["AS", "WITH", "TABLE", "INTO", "UPDATE", "FROM", "JOIN", "COLUMN"];
/** Words that are followed by an operand. */
const BEFORE_OPERANDS = ["SELECT", "DISTINCT", "BY", "WHERE", "AND", "OR", "NOT", "ON"];
/** Words that cannot begin an operand. Before a comparison they must be a name: `where limit = 1`. */
const NO_OPERANDS =
  /^(?:AS|DISTINCT|ELSE|END|EXCEPT|FROM|HAVING|INTERSECT|JOIN|LIMIT|ON|ORDER|TABLE|THEN|UNION|WHEN|WHERE|WITH)$/;
const COMPARISONS = ["=", "!=", "<>", "<", "<=", ">", ">="];

export interface Surroundings {
  /** Inside a CASE. */
  inCase: boolean;
  /** The statement is an UPDATE. */
  inUpdate: boolean;
}

/** True if the reserved word at `index` is a name. `word` is its upper-case spelling. */
export function isNameHere(
  tokens: readonly Token[],
  index: number,
  word: string,
  { inCase, inUpdate }: Surroundings,
): boolean {
  const before = tokens[index - 1], next = tokens[index + 1]!;
  const isAssigned = isMark(next, "=") && (isWord(before, "SET") || inUpdate && isMark(before, ","));
  // GRANT ADD COLUMN ON t
  const namesColumn = isWord(before, "COLUMN") && next.kind === "word" && !isWord(tokens[0], "GRANT", "REVOKE");
  if (isAssigned || namesColumn) return true;
  switch (word) {
    case "WHEN":
    case "THEN":
    case "ELSE":
      return !inCase;
    case "IS":
    case "ILIKE":
      return isWord(before, ...BEFORE_NAMES) || isInList(before, next);
    case "HAVING":
      return isWord(before, ...BEFORE_NAMES, ...BEFORE_OPERANDS) || isInList(before, next) || isOperator(before) ||
        isLast(next);
    case "NULL":
    case "TRUE":
    case "FALSE":
      return isWord(before, "FROM", "JOIN") && !endsComparison(tokens, index) && !isExtracted(tokens, index);
  }
  if (!NO_OPERANDS.test(word)) return false;
  if (isMark(before, "(") && isMark(next, ")")) return tokens[index - 2]?.kind === "word" && word !== "DISTINCT";
  const opens = isWord(before, "WHERE", "AND", "OR", "NOT") || isMark(before, "(");
  return opens && COMPARISONS.some((mark) => isMark(next, mark));
}

/** True after IS [NOT] DISTINCT FROM. */
function endsComparison(tokens: readonly Token[], index: number): boolean {
  return isWord(tokens[index - 2], "DISTINCT") && isWord(tokens[index - 3], "IS", "NOT");
}

/** True after EXTRACT(unit FROM. */
function isExtracted(tokens: readonly Token[], index: number): boolean {
  return isMark(tokens[index - 3], "(") && isWord(tokens[index - 4], "EXTRACT");
}

/** True in a list of columns: `(is int, having int)`, `(is, having)`. */
function isInList(before: Token | undefined, next: Token): boolean {
  if (!isMark(before, "(") && !isMark(before, ",")) return false;
  return isMark(next, ",") || isMark(next, ")") ||
    (next.kind === "word" && !isWord(next, "NOT", "NULL", "TRUE", "FALSE"));
}

function isOperator(token: Token | undefined): boolean {
  return token?.kind === "operator" && !/^[)\]*]$/.test(token.text);
}

function isLast(next: Token): boolean {
  return isWord(next, "FROM") || next.kind === "end" || next.kind === "semicolon" || isMark(next, ")");
}
