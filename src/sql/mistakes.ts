/**
 * Finds the error message and position for tokens that the grammar cannot read, at the position that users of the
 * dialect expect.
 */
import { SqlError } from "../errors.ts";
import { didYouMean } from "../nearest.ts";
import { typeSpellings } from "../types/mod.ts";
import { expectations, found, unexpected } from "./expectations.ts";
import { characterOf, MARKS } from "./grammar.ts";
import { phraseHint, statementHint } from "./other-dialects.ts";
import { isMark, isWord, type Token } from "./lexer.ts";
import { type FirstWords, misspelledKeyword } from "./misspelled-keywords.ts";
import { QUERY_RULE } from "./statements/query.ts";
import { CLASS_CHARACTERS } from "./token-classes.ts";

export interface Mistake {
  readonly tokens: readonly Token[];
  /** For an opening bracket: the index of its closing one, or of the end of the statement if it is not closed. */
  readonly partners: ReadonlyMap<number, number>;
  /** The rule of the grammar and its input: one character for each token, and the tokens' indices. */
  readonly rule: string;
  readonly characters: string;
  readonly map: readonly number[];
  /** Index in `map` of the token that the grammar could not read. */
  readonly at: number;
  /** What the grammar expected there, named as by `readable()`. */
  readonly expected: ReadonlySet<string>;
}

export function errorOf(mistake: Mistake, statements: FirstWords): SqlError {
  const { tokens, map, at } = mistake;
  const token = tokens[map[at]!]!;
  const expected = expectations(mistake.expected);
  const place = blamed(mistake, expected);
  const tokenAt = (index: number) => tokens[map[index]!]!;
  const foreign = phraseHint(tokens, map[at]!);
  if (foreign !== undefined) return new SqlError(`Cannot read the statement: ${foreign.message}`, foreign.at);
  const misspelled = misspelledKeyword(mistake, (index) => tokenAt(index).text, statements);
  if (misspelled !== undefined) {
    const { index, keyword } = misspelled;
    const word = tokenAt(index);
    if (index === 0) return new SqlError(`unknown statement ${word.text}; did you mean ${keyword}?`, word.at);
    const message = `Cannot read the statement: ${found(word)}; did you mean ${keyword}?`;
    return new SqlError(message, place ? place.at : word.at);
  }
  if (isUnknownStatement(mistake) && !statements.words.includes(tokenAt(0).text.toUpperCase())) {
    const { text, at } = tokenAt(0);
    const known = statementHint(text) ?? "expected SELECT, INSERT, CREATE or another statement, or a table's name";
    const message = `unknown statement ${text}: ${known}`;
    return new SqlError(message, at);
  }
  if (place === undefined) return unexpected(token, expected);
  return new SqlError(place.message ?? unexpected(token, expected).message, place.at);
}

/** A word followed by something that cannot follow a table name. */
function isUnknownStatement({ rule, characters, at }: Mistake): boolean {
  return rule === QUERY_RULE && at === 1 && characters.length > 1 && characters[0] === CLASS_CHARACTERS.name;
}

/**
 * Finds the position of the error if it is not where reading stopped: an operator without an operand, an IS with an
 * invalid right side, a bracket or CASE that is not closed. Without `message`, the message for the token applies.
 */
function blamed(mistake: Mistake, expected: readonly string[]): { at: number; message?: string } | undefined {
  const { tokens, partners, map, at } = mistake;
  const index = map[at]!, first = map[0]!;
  const previous = at > 0 ? tokens[index - 1] : undefined;
  if (previous === undefined) return undefined;
  const token = tokens[index]!;
  const isAtEnd = at === map.length - 1;
  const is = (place: number, mark: string) => isMark(tokens[place], mark);
  const lastOpen = (holds: (open: number) => boolean) => map.findLast((open) => is(open, "(") && holds(open));
  if (isWord(token, "UNION", "EXCEPT", "INTERSECT")) {
    const tail = tailBefore(tokens, index, first);
    if (tail === undefined) return undefined;
    const message = `${tail.text.toUpperCase()} before ${token.text.toUpperCase()}: put the query in parentheses`;
    return { at: tail.at, message };
  }
  const openCase = caseBefore(tokens, index, first);
  const isClause = isWord(token, ...CLAUSES);
  if (expected.includes("an expression")) {
    if (isClause && openCase !== undefined) return { at: openCase, message: CASE_OPEN };
    if (isClause && isOperator(previous) && !isWord(previous, "WHERE", "HAVING")) return { at: token.at };
    if (isWord(previous, "WHERE") && (isOperator(token) || isWord(token, "BETWEEN"))) return { at: token.at };
    if (is(index - 1, "(") && isWord(tokens[index - 2], "CAST")) {
      return { at: tokens[index - 2]!.at, message: CAST_FORM };
    }
    const isOffset = (isWord(previous, "BETWEEN") && isWord(tokens[index - 2], "RANGE")) ||
      (isWord(previous, "AND") && isWord(tokens[index - 2], "PRECEDING", "FOLLOWING", "ROW"));
    if (isOffset && token.kind === "duration") return { at: token.at, message: OFFSET_FORM };
    const between = betweenBefore(tokens, index, first);
    if (isWord(previous, "AND") && between !== undefined) return { at: between, message: BETWEEN_FORM };
    if (isOperator(previous) || (isAtEnd && isWord(previous, "NOT", "ON"))) {
      return { at: previous.at, message: `expected an expression after ${previous.text}` };
    }
  }
  if (is(index - 1, "(") && isWord(token, "SELECT") && isWord(tokens[index - 3], "WITH", "RECURSIVE")) {
    return { at: previous.at, message: `expected AS after ${tokens[index - 2]!.text}` };
  }
  if (is(index, ",") && mistake.expected.has(")") && isWord(tokens[first], "DECLARE")) {
    const open = lastOpen((place) => place < index);
    if (open !== undefined && is(open - 1, ":=")) {
      const close = partners.get(open)!; // the end of the statement, if the list is not closed
      return {
        at: (tokens[close + 1] ?? tokens[close]!).at,
        message: "a variable has one value: a list is not allowed",
      };
    }
  }
  if (mistake.expected.has("AND") && is(index, ",")) {
    const between = betweenBefore(tokens, index, first);
    if (between !== undefined) return { at: between, message: BETWEEN_FORM };
  }
  if (is(index, ",") && mistake.expected.has(")")) {
    const open = lastOpen((place) => place < index && partners.get(place)! >= index);
    const before = open === undefined ? undefined : tokens[open - 1];
    const isList = before !== undefined && (isOperator(before) || isWord(before, ...BEFORE_VALUES));
    if (isList || is(open! - 1, "(") || is(open! - 1, ",")) return { at: tokens[open!]!.at, message: NO_ROWS };
  }
  if (is(index - 1, ".") && mistake.expected.has("a name")) return { at: previous.at + 1 };
  if (
    mistake.expected.has("JOIN") &&
    isWord(previous, "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "ASOF", "LT", "SPLICE", "HORIZON")
  ) {
    return { at: previous.at };
  }
  if (isWord(previous, "AS") && is(index, ")")) {
    const open = lastOpen((place) => partners.get(place) === index);
    if (open !== undefined && isWord(tokens[open - 1], "CAST")) return { at: tokens[open - 1]!.at, message: CAST_FORM };
  }
  if (mistake.expected.has("END") && isClause && openCase !== undefined) return { at: openCase, message: CASE_OPEN };
  if (mistake.expected.has("NULL") && mistake.expected.has("TRUE") && !expected.includes("an expression")) {
    const word = isWord(previous, "NOT") ? tokens[index - 2]! : previous;
    if (isWord(word, "IS")) return { at: word.at };
  }
  const typed = typeBefore(tokens, index);
  if (typed !== undefined) {
    return { at: typed.at, message: typedMessage(typed.text) };
  }
  if (at > 1 && mistake.expected.has("AS") && isWord(tokens[index - 2], "WINDOW")) return { at: tokens[index - 2]!.at };
  return isAtEnd ? blamedAtEnd(mistake, expected, previous, openCase) : undefined;
}

/** The position of the error if the statement ends too early. */
function blamedAtEnd(
  { tokens, partners, map, expected: exact }: Mistake,
  expected: readonly string[],
  previous: Token,
  openCase: number | undefined,
): { at: number; message?: string } | undefined {
  const index = map.at(-1)!;
  if (isWord(previous, "LATEST", "OVER")) return { at: previous.at };
  if (isWord(previous, "FROM", "TO") && expected.includes("an expression")) return { at: previous.at };
  if (isWord(previous, "TABLE") && isWord(tokens[index - 2], "DROP")) return { at: previous.at };
  if (exact.has(")")) {
    const first = map.find((place) => isMark(tokens[place], "("));
    const open = map.findLast((place) => isMark(tokens[place], "(") && partners.get(place) === index);
    // A sub-query may continue; an expression should have ended.
    if (open !== undefined && isWord(tokens[open + 1], "SELECT", "WITH", "DECLARE")) return undefined;
    // In a list of column definitions, the error is at the end.
    if (open === first && isWord(tokens[map[0]!], "CREATE")) return undefined;
    if (isWord(tokens[open! - 1], "PIVOT")) return { at: previous.at, message: "PIVOT is not closed: ) is missing" };
    if (open !== undefined) return { at: tokens[open]!.at, message: "The parenthesis is not closed: ) is missing" };
  }
  if (isWord(previous, "IN")) return { at: previous.at };
  if (exact.has("END") && openCase !== undefined) return { at: openCase, message: CASE_OPEN };
  return undefined;
}

const CASE_OPEN = "CASE is not closed: END is missing";
const CAST_FORM = "CAST is written as cast(value as type)";
const OFFSET_FORM = "an offset in a range has a number and a unit in words, such as 10 seconds";
const BETWEEN_FORM = "BETWEEN is written as value BETWEEN low AND high";
const NO_ROWS = "values in brackets are not a row: compare each one, as in a = 1 AND b = 2";

/** Words before a value. In front of a bracket they tell that it does not belong to a function. */
const BEFORE_VALUES = ["SELECT", "DISTINCT", "ON", "NOT", "WHEN", "THEN", "ELSE", "BY"];

/** Words that end an expression. If an operand is missing before one of them, the error is at the word. */
const CLAUSES = ["FROM", "WHERE", "ORDER", "GROUP", "LIMIT", "ON", "JOIN"];

function typedMessage(type: string): string {
  const known = typeSpellings();
  return known.includes(type.toLowerCase())
    ? `a text is cast to ${type} by cast('…' as ${type})`
    : `unknown type ${type} before a text${didYouMean(type, known)}`;
}

/** Returns the word before a string at `index` or before it, if the word looks like an unknown type. */
function typeBefore(tokens: readonly Token[], index: number): Token | undefined {
  const string = tokens[index]!.kind === "string" ? index : index - 1;
  const type = tokens[string - 1];
  const isTyped = tokens[string]!.kind === "string" && type?.kind === "word" &&
    (characterOf(type) === CLASS_CHARACTERS.name || isWord(type, "TIME", "INTERVAL"));
  return isTyped ? type : undefined;
}

/** The last CASE before `index` without an END. */
function caseBefore(tokens: readonly Token[], index: number, first: number): number | undefined {
  let closed = 0;
  for (let i = index - 1; i >= first; i--) {
    if (isWord(tokens[i], "END")) closed++;
    else if (isWord(tokens[i], "CASE") && closed-- === 0) return tokens[i]!.at;
  }
  return undefined;
}

/** The last BETWEEN before `index` without a second bound. */
function betweenBefore(tokens: readonly Token[], index: number, first: number): number | undefined {
  for (let i = index - 1, ands = 0; i >= first; i--) {
    if (isWord(tokens[i], "AND") && ++ands > 1) return undefined;
    if (!isWord(tokens[i], "BETWEEN")) continue;
    return isWord(tokens[i - 1], "ROWS", "RANGE", "GROUPS") ? undefined : tokens[i]!.at;
  }
  return undefined;
}

/** ORDER BY or LIMIT before a set operation at `index`. They are only allowed after the last query. */
function tailBefore(tokens: readonly Token[], index: number, first: number): Token | undefined {
  let depth = 0;
  let tail: Token | undefined;
  for (let i = index - 1; i >= first && depth >= 0; i--) {
    if (isMark(tokens[i], ")")) depth++;
    else if (isMark(tokens[i], "(")) depth--;
    else if (depth === 0 && isWord(tokens[i], "ORDER", "LIMIT")) tail = tokens[i];
    else if (depth === 0 && isWord(tokens[i], "SELECT")) break;
  }
  return tail;
}

function isOperator({ kind, text }: Token): boolean {
  if (kind === "operator") return text === ":=" || MARKS.get(text)! <= MARKS.get("|")!;
  return kind === "word" && /^(and|or|like|ilike|between|where|having)$/i.test(text);
}
