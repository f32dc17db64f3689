/**
 * Tokens → syntax tree: classifies tokens for the grammar, parses lists of values without it, and words the errors.
 */
import { notSupported, SqlError, SQLSTATE } from "../errors.ts";
import type { Expression, SelectItem, Statement } from "./ast.ts";
import { type Effort, FULL_EFFORT } from "./effort.ts";
import { unexpected } from "./expectations.ts";
import { characterOf, grammar, isNameCharacter, KEYWORDS, readable } from "./grammar.ts";
import { isMark, isWord, type Token, tokenize } from "./lexer.ts";
import { bareDate } from "./other-dialects.ts";
import { errorOf } from "./mistakes.ts";
import { READERS, STATEMENT_RULES } from "./statements/mod.ts";
import { QUERY_RULE } from "./statements/query.ts";
import { unsupportedStatement } from "./statements/unsupported.ts";
import { CLASS_CHARACTERS, reservedWord } from "./token-classes.ts";
import { type MatchedNodes, nodesOf, toTree } from "./tree.ts";
import { spelling } from "./tree-nodes.ts";
import { isNameHere } from "./word-names.ts";

/**
 * Maximum nesting of brackets and CASEs. Sub-queries and window definitions count twice. Each level takes stack in the
 * grammar (a hundred nested IN sub-queries exhausted a stack of 1 MB) and in all functions that walk the tree.
 */
export const NESTING_MAX = 100;

/** Parses one statement with an optional semicolon. Offsets count from the start of `text`. */
export function parse(text: string, effort: Effort = FULL_EFFORT): Statement {
  const { source, ranges } = split(text, effort);
  if (ranges.length === 0) return { kind: "empty", at: 0 };
  if (ranges.length > 1) {
    throw new SqlError(
      "Only one statement can be run at a time: found another one after the semicolon",
      source.tokens[ranges[1]!.from]!.at,
    );
  }
  return parseRange(source, ranges[0]!);
}

interface Range {
  readonly from: number;
  readonly to: number;
}

function split(text: string, effort: Effort): { source: Source; ranges: Range[] } {
  const tokens = tokenize(text, effort);
  const source = new Source(text, tokens, effort);
  const ranges: Range[] = [];
  let from = 0;
  tokens.forEach((token, index) => {
    if (token.kind !== "semicolon" && token.kind !== "end") return;
    if (index > from) ranges.push({ from, to: index });
    from = index + 1;
  });
  return { source, ranges };
}

/** First words of statements that the grammar does not start with. They may also be table names. */
const PLAIN_WORDS = [
  ...READERS.flatMap(({ words }) => words),
  ...Object.keys(STATEMENT_RULES).filter((words) => words.includes(" ")).map((words) => words.split(" ")[0]!),
];

/** Rules by first word, for words that begin a statement in the grammar. */
const RULES = Object.fromEntries(Object.entries(STATEMENT_RULES).filter(([words]) => !words.includes(" ")));

/** The first words of statements. */
export const STATEMENT_WORDS = [...PLAIN_WORDS, ...Object.keys(RULES)];

function parseRange(source: Source, range: Range): Statement {
  const { tokens } = source;
  const { from, to } = range;
  refuseUnsupported(source, range);
  for (const { words, read } of READERS) {
    if (!isWord(tokens[from], ...words)) continue;
    const statement = read(tokens, from, to, (inner) => parseRange(source, { from: inner, to }));
    if (statement !== undefined) return statement;
  }
  return source.match<Statement>(ruleOf(tokens, range), range);
}

/** Rules of two words take precedence. For example, CANCEL without QUERY is a table. */
function ruleOf(tokens: Token[], { from, to }: Range): string {
  const word = (index: number) => index < to && tokens[index]!.kind === "word" ? tokens[index]!.text.toUpperCase() : "";
  const first = word(from);
  return STATEMENT_RULES[`${first} ${word(from + 1)}`] ?? STATEMENT_RULES[first] ?? QUERY_RULE;
}

function refuseUnsupported({ text, tokens }: Source, range: Range): void {
  const unsupported = unsupportedStatement(tokens, range.from, range.to);
  if (unsupported !== undefined) throw notSupported(unsupported, tokens[range.from]!.at);
  for (let index = range.from; index < range.to; index++) {
    const token = tokens[index]!;
    if (token.kind === "number") {
      const mistake = bareDate(text, token);
      if (mistake !== undefined) throw mistake;
    }
    if (token.kind !== "word") continue;
    const next = tokens[index + 1]!;
    switch (token.text.length) {
      case 6:
        if (isWord(token, "FILTER") && next.text === "(" && isWord(tokens[index + 2], "WHERE")) {
          throw notSupported("FILTER", token.at);
        }
        break;
      case 7:
        if (isWord(token, "NATURAL") && isWord(next, "JOIN", "INNER", "LEFT", "RIGHT", "FULL")) {
          throw notSupported("NATURAL JOIN", token.at);
        }
        if (isWord(token, "LATERAL") && next.text === "(" && index > range.from && isWord(tokens[index - 1], "JOIN")) {
          throw notSupported("LATERAL", token.at);
        }
        break;
      case 8:
        if (isWord(token, "DISTINCT") && isWord(next, "ON")) throw notSupported("DISTINCT ON", token.at);
        break;
    }
  }
}

const readBefore = new Map<string, MatchedNodes>();
const READ_TOKENS_MAX = 400;
/** Limit of the cache. A match of the grammar takes about 1.5 kB for each token. */
const READ_TOKENS_SUM_MAX = 10_000;
let readTokens = 0;

/** A text with its tokens, and the partner of each bracket. */
class Source {
  readonly text: string;
  readonly tokens: Token[];
  /** For an opening bracket: the index of its closing one, or of the end of the statement if it is not closed. */
  readonly #partners: Map<number, number>;
  /** Cache of each token's character in the grammar. */
  readonly #characters: (string | undefined)[];
  readonly #effort: Effort;
  /** Number of tokens that the grammar has read so far. `knownWords` counts those of forms that were cached. */
  #words = 0;
  #knownWords = 0;

  constructor(text: string, tokens: Token[], effort: Effort) {
    this.text = text;
    this.tokens = tokens;
    this.#effort = effort;
    this.#characters = new Array(tokens.length);
    this.#partners = partners(tokens, (index) => this.#characters[index] = CLASS_CHARACTERS.name);
  }

  /** Returns the tree for a range of tokens by a rule of the grammar. */
  match<T>(rule: string, range: Range): T {
    const { characters, map, lists } = this.#encode(range);
    try {
      return toTree(this.#read(rule, characters, map, lists), { source: this, map }) as T;
    } catch (error) {
      // NESTING_MAX should prevent this, but the caller may have used up most of the stack already.
      if (error instanceof RangeError) {
        throw new SqlError(
          "The statement is nested too deeply",
          this.tokens[range.from]!.at,
          SQLSTATE.programLimitExceeded,
          { cause: error },
        );
      }
      throw error;
    }
  }

  /** A match of a token string is valid for all statements that differ only in names and values, so it is cached. */
  #read(rule: string, characters: string, map: number[], lists: number[]): MatchedNodes {
    const key = rule + characters;
    let nodes = readBefore.get(key);
    this.#count(map, nodes !== undefined);
    if (nodes === undefined) {
      const result = grammar.match(characters, rule);
      if (result.failed()) throw this.#failure(rule, characters, map, lists, result as unknown as Failed);
      nodes = nodesOf(result);
      if (characters.length > READ_TOKENS_MAX) return nodes;
      readTokens += key.length;
    } else readBefore.delete(key);
    // Re-insert, so that the map is in order of last use.
    readBefore.set(key, nodes);
    while (readTokens > READ_TOKENS_SUM_MAX) {
      const oldest = readBefore.keys().next().value!;
      readBefore.delete(oldest);
      readTokens -= oldest.length;
    }
    return nodes;
  }

  /**
   * @throws if the statement is too long for this thread.
   */
  #count(map: number[], isKnown: boolean): void {
    const { words, knownWords, beyond } = this.#effort;
    const before = isKnown ? this.#knownWords : this.#words;
    const sum = before + map.length - 1;
    const max = isKnown ? knownWords : words;
    if (sum > max) {
      throw beyond(`${sum} words and marks excluding lists of values`, this.tokens[map[max - before]!]!.at, max);
    }
    if (isKnown) this.#knownWords = sum;
    else this.#words = sum;
  }

  /**
   * Parses the items of a list in brackets, from the index of the opening one. Plain values are read directly, and only
   * other items use the grammar, so that 50,000 literals never go through it.
   */
  items(open: number): { items: Expression[]; next: number } {
    return this.#list(open, (from, to) => this.#item(from, to));
  }

  /** Parses the values of a list of PIVOT, each with an optional alias, from the index of the opening parenthesis. */
  pivotValues(open: number): SelectItem[] {
    return this.#list(open, (from, to): SelectItem => {
      if (to - from > 1) return this.match("pivotValue", { from, to });
      return { at: this.tokens[from]!.at, expression: this.#item(from, to) };
    }, true).items;
  }

  #list<T>(open: number, read: (from: number, to: number) => T, isPivot = false): { items: T[]; next: number } {
    const close = this.#partners.get(open)!;
    const isArray = this.tokens[open]!.text === "[";
    if (isArray && !this.#is(close, "]")) {
      throw new SqlError("The array is not closed: ] is missing", this.tokens[open]!.at);
    }
    if (!isArray && isWord(this.tokens[open - 1], "IN") && !this.#is(close, ")")) {
      throw new SqlError("The list is not closed: ) is missing", this.tokens[open]!.at);
    }
    if (close === open + 1) {
      const blamed = isWord(this.tokens[open - 1], "VALUES") || isPivot ? close : open - 1;
      throw new SqlError("The list is empty: expected at least one expression", this.tokens[blamed]!.at);
    }
    const items: T[] = [];
    let from = open + 1;
    for (;;) {
      let to = from;
      for (; to < close; to++) {
        const { kind, text } = this.tokens[to]!;
        if (kind !== "operator") continue;
        if (text === ",") break;
        if (text === "(" || text === "[") to = this.#partners.get(to)!;
      }
      to = Math.min(to, close);
      if (from === to) throw unexpected(this.tokens[to]!, ["an expression"]);
      items.push(read(from, to));
      if (to === close) break;
      from = to + 1;
    }
    if (!this.#is(close, isArray ? "]" : ")")) throw unexpected(this.tokens[close]!, ["a comma", isArray ? "]" : ")"]);
    return { items, next: close + 1 };
  }

  /** Parses the rows of VALUES, from the first opening parenthesis. */
  rows(open: number): { rows: Expression[][]; rowsAt: number[]; rowEnds: number[] } {
    const rows: Expression[][] = [];
    const rowsAt: number[] = [], rowEnds: number[] = [];
    for (let from = open;;) {
      rowsAt.push(this.tokens[from]!.at);
      const { items, next } = this.items(from);
      rows.push(items);
      rowEnds.push(this.tokens[next - 1]!.at);
      if (!this.#is(next, ",") || !this.#is(next + 1, "(")) return { rows, rowsAt, rowEnds };
      from = next + 1;
    }
  }

  #item(from: number, to: number): Expression {
    const first = this.tokens[from]!;
    const { at } = first;
    if (to - from === 1) {
      switch (first.kind) {
        case "number":
          return { kind: "number", at, text: first.text };
        case "string":
          return { kind: "string", at, value: first.text };
        case "geohash":
          return { kind: "geohash", at, text: first.text };
        case "parameter":
          return { kind: "parameter", at, index: Number(first.text) - 1 };
        case "word":
          if (isWord(first, "NULL")) return { kind: "null", at, ...spelling(first) };
          if (isWord(first, "TRUE")) return { kind: "boolean", at, value: true, ...spelling(first) };
          if (isWord(first, "FALSE")) return { kind: "boolean", at, value: false, ...spelling(first) };
      }
    } else if (to - from === 2 && this.#is(from, "-") && this.tokens[from + 1]!.kind === "number") {
      const operand: Expression = { kind: "number", at: this.tokens[from + 1]!.at, text: this.tokens[from + 1]!.text };
      return { kind: "unary", at, operator: "-", operand };
    } else if (this.#is(from, "[") && this.#partners.get(from) === to - 1) {
      // An array within an array literal.
      return { kind: "array", at, items: this.arrayItems(from) };
    } else if (isWord(first, "ARRAY") && this.#is(from + 1, "[") && this.#partners.get(from + 1) === to - 1) {
      return { kind: "array", at: this.tokens[from + 1]!.at, items: this.arrayItems(from + 1) };
    } else if (this.#isPlainCall(from, to)) {
      const args = to - from === 3 ? [] : this.items(from + 1).items;
      return { kind: "call", at, name: first.text, args, distinct: false, ignoreNulls: false };
    } else if (
      to - from === 3 && this.#is(from + 1, "::") && LITERALS.has(first.kind) &&
      isNameCharacter(characterOf(this.tokens[from + 2]!))
    ) {
      const colons = this.tokens[from + 1]!;
      const word = this.tokens[from + 2]!;
      const type = { at: word.at, name: word.text.toLowerCase(), ...spelling(word), parameters: [], dimensions: 0 };
      return { kind: "cast", at: colons.at, operand: this.#item(from, from + 1), type, style: "::" };
    }
    return this.match<Expression>("expressionOnly", { from, to });
  }

  /** `now()`, `to_timestamp('…')`: a name that is not a keyword, and arguments without keywords. */
  #isPlainCall(from: number, to: number): boolean {
    if (!this.#is(from + 1, "(") || this.#partners.get(from + 1) !== to - 1) return false;
    if (characterOf(this.tokens[from]!) !== CLASS_CHARACTERS.name) return false;
    return !this.#is(from + 2, "*") && !isWord(this.tokens[from + 2], "DISTINCT", "SELECT", "WITH", "DECLARE");
  }

  arrayItems(open: number): Expression[] {
    return this.#partners.get(open) === open + 1 ? [] : this.items(open).items;
  }

  #is(index: number, mark: string): boolean {
    return isMark(this.tokens[index], mark);
  }

  /** One character for each token, or for each whole list of values. `map` ends with the token after the range. */
  #encode(range: Range): { characters: string; map: number[]; lists: number[] } {
    const { tokens } = this;
    const map: number[] = [];
    const lists: number[] = [];
    let characters = "";
    const push = (character: string, index: number) => {
      characters += character;
      map.push(index);
    };
    for (let index = range.from; index < range.to; index++) {
      const character = this.#characters[index] ??= characterOf(tokens[index]!);
      if (character === KEYWORDS.get("IN") && this.#is(index + 1, "(") && !this.#holdsQuery(index + 1)) {
        push(character, index);
        push(CLASS_CHARACTERS.items, index + 1);
        lists.push(index + 1);
        index = Math.min(this.#partners.get(index + 1)!, range.to - 1);
      } else if (character === KEYWORDS.get("ARRAY") && this.#is(index + 1, "[")) {
        push(CLASS_CHARACTERS.array, index);
        if (this.#partners.get(index + 1)! > index + 2) lists.push(index + 1);
        index = Math.min(this.#partners.get(index + 1)!, range.to - 1);
      } else if (character === KEYWORDS.get("VALUES") && this.#is(index + 1, "(")) {
        push(character, index);
        push(CLASS_CHARACTERS.rows, ++index);
        for (;;) {
          lists.push(index);
          index = Math.min(this.#partners.get(index)!, range.to - 1);
          // Parentheses after the range belong to an enclosing list.
          if (index + 2 >= range.to || !this.#is(index + 1, ",") || !this.#is(index + 2, "(")) break;
          index += 2;
        }
      } else {
        push(character, index);
      }
    }
    map.push(range.to);
    return { characters, map, lists };
  }

  /** True if the parenthesis contains a query instead of values: true for `((select …))`, false for `((1), 2)`. */
  #holdsQuery(open: number): boolean {
    let index = open;
    while (this.#is(index, "(")) index++;
    if (!isWord(this.tokens[index], "SELECT", "WITH", "DECLARE")) return false;
    // `in ((select 1), (select 2))` is a list of two.
    const close = this.#partners.get(open)!;
    const inner = this.#is(open + 1, "(") ? this.#partners.get(open + 1)! : close;
    return inner === close || !this.#is(inner + 1, ",");
  }

  #failure(rule: string, characters: string, map: number[], lists: number[], stopped: Failed): SqlError {
    const at = stopped.getRightmostFailurePosition();
    // An error in an earlier list comes first in the text.
    for (const open of lists) if (open < map[at]!) this.items(open);
    const expected = new Set(stopped.getRightmostFailures().flatMap((failure) => readable(failure) ?? []));
    const mistake = { tokens: this.tokens, partners: this.#partners, rule, characters, map, at, expected };
    return errorOf(mistake, { rules: RULES, words: STATEMENT_WORDS });
  }
}

interface Failed {
  getRightmostFailurePosition(): number;
  getRightmostFailures(): { toString(): string; getText(): string }[];
}

const LITERALS = new Set(["number", "string", "parameter"]);

/**
 * Pairs the brackets, and refuses deep nesting before any recursion. Also calls `nameAt` for reserved words that are
 * used as names.
 */
function partners(tokens: Token[], nameAt: (index: number) => void): Map<number, number> {
  const pairs = new Map<number, number>();
  const open: number[] = [];
  const weights: number[] = [];
  let bracketDepth = 0;
  let cases = 0;
  let prefixes = 0;
  let inUpdate = isWord(tokens[0], "UPDATE");
  for (let index = 0; index < tokens.length; index++) {
    const { kind, text, at } = tokens[index]!;
    let prefix = false;
    if (kind === "operator") {
      if (text === "(" || text === "[") {
        open.push(index);
        const heavy = isWord(tokens[index - 1], "OVER") || isWord(tokens[index + 1], "SELECT", "WITH", "DECLARE");
        weights.push(heavy ? 2 : 1);
        bracketDepth += heavy ? 2 : 1;
      } else if (text === ")" || text === "]") {
        const partner = open.pop();
        if (partner !== undefined) {
          pairs.set(partner, index);
          bracketDepth -= weights.pop()!;
        }
      } else prefix = text === "-" || text === "+" || text === "~";
    } else if (kind === "word") {
      const reserved = reservedWord(text);
      if (reserved === undefined) prefix = false;
      else if (isNameHere(tokens, index, reserved, { inCase: cases > 0, inUpdate })) nameAt(index);
      else if (reserved === "CASE") cases++;
      else if (reserved === "END") cases = Math.max(0, cases - 1);
      else prefix = reserved === "NOT";
    } else if (kind === "semicolon" || kind === "end") {
      for (const opening of open) pairs.set(opening, index);
      inUpdate = isWord(tokens[index + 1], "UPDATE");
      open.length =
        weights.length =
        bracketDepth =
        cases =
          0;
    }
    prefixes = prefix ? prefixes + 1 : 0;
    const depth = bracketDepth + cases + prefixes;
    if (depth > NESTING_MAX) {
      throw new SqlError(
        `The statement is nested too deeply: at most ${NESTING_MAX} levels are allowed`,
        at,
        SQLSTATE.programLimitExceeded,
      );
    }
  }
  return pairs;
}
