/**
 * Text → tokens. Hand-written: recognizes strings, comments, numbers and operators, and refuses invalid characters. The grammar
 * decides which words are keywords, so that most of them can also be names.
 */
import { SqlError, SQLSTATE } from "../errors.ts";
import { type Effort, FULL_EFFORT } from "./effort.ts";

export type TokenKind =
  /** An unquoted name or keyword. */
  | "word"
  /** A name in double quotes or backticks; `value` is the name without them. */
  | "quoted"
  /** 'text'; `value` is without the quotes. */
  | "string"
  /** A numeric literal: 1, 1_000, .5, 1e3, 0xff, 7L, 1.50m, 3d. */
  | "number"
  /**
   * Digits followed by letters that are not a number: 15m, 4c, 1M, 30s. (15m and 1d are numbers that also serve as
   * durations.)
   */
  | "duration"
  /** $1, or ? counted from the left. */
  | "parameter"
  /** @name */
  | "variable"
  /** #u33d, ##0101 */
  | "geohash"
  | "operator"
  | "semicolon"
  | "end";

export interface Token {
  readonly kind: TokenKind;
  /**
   * As written, but without quotes and with doubled quotes unescaped for strings and quoted names, and without the @
   * for variables.
   */
  readonly text: string;
  readonly at: number;
  readonly end: number;
}

export function isWord(token: Token | undefined, ...words: string[]): boolean {
  return token?.kind === "word" && words.includes(token.text.toUpperCase());
}

export function isMark(token: Token | undefined, mark: string): boolean {
  return token !== undefined && token.kind === "operator" && token.text === mark;
}

/** Longest first, because the lexer takes the first match. */
const OPERATORS = [
  "<<=",
  ">>=",
  "<<",
  ">>",
  "<=",
  ">=",
  "<>",
  "!=",
  "!~",
  "::",
  ":=",
  "||",
  ..."+-*/%=<>~&|^(),.[]:;{}",
];
const OPERATORS_BY_FIRST = new Map<number, string[]>();
for (const operator of OPERATORS) {
  const first = operator.charCodeAt(0);
  OPERATORS_BY_FIRST.set(first, [...OPERATORS_BY_FIRST.get(first) ?? [], operator]);
}

/** An integer with underscores, a fraction without underscores, an exponent, a suffix; or hexadecimal digits. */
const NUMBER = /^(?:0[xX][0-9a-fA-F]+|\d+(?:_\d+)*[lL]?|(?:\d+\.?\d*|\.\d+|\d+(?:_\d+)*)(?:[eE][+-]?\d+)?[dDfFmM]?)$/;
/** Characters that belong together after a digit. A sign belongs to the number only in an exponent. */
const NUMBER_LIKE =
  /(?:0[xX][0-9a-zA-Z_]*|(?:\d[\d_]*(?:\.\d[\d_]*|\.(?![.\p{L}])|\.(?=[eE][+-]?\d|[mMdDfF](?![\p{L}\p{N}_])))?|\.\d[\d_]*)(?:[eE][+-]?\d+(?![\p{L}_])|[eE][+-]?\d+[dDfFmM](?![\p{L}\p{N}_]))?[\p{L}\p{N}_]*)/uy;
const WORD = /[\p{L}_\u0080-\uffff][\p{L}\p{N}\p{M}_$\u0080-\uffff]*/uy;
const GEOHASH = /##?[0-9a-zA-Z]*(?:\/\d+)?/y;

/** Longer statements are refused before any work is done. */
const TEXT_LENGTH_MAX = 64 * 1024 * 1024;

/** Returns the tokens of `text`, and a last one of kind "end" at the end of the text. @throws if there are more than `effort` allows. */
export function tokenize(
  text: string,
  { tokens: max, beyond }: Pick<Effort, "tokens" | "beyond"> = FULL_EFFORT,
): Token[] {
  const tokens: Token[] = [];
  readTokens(text, (token) => {
    if (tokens.push(token) > max && token.kind !== "end") {
      throw beyond("its lists of values have too many words and marks", token.at, max);
    }
  });
  return tokens;
}

/** Calls `take` for each of these tokens, for texts whose tokens are not kept. */
export function readTokens(text: string, take: (token: Token) => void): void {
  if (text.length > TEXT_LENGTH_MAX) {
    throw new SqlError(
      `The text is too long: ${text.length} characters, at most ${TEXT_LENGTH_MAX} are allowed`,
      TEXT_LENGTH_MAX,
      SQLSTATE.programLimitExceeded,
    );
  }
  let isFirst = true;
  const push = (token: Token) => {
    isFirst = false;
    take(token);
  };
  let at = 0;
  let questionMarks = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (isSpace(code)) {
      at++;
    } else if (isWordStart(code)) {
      // Escape strings E'...', which PostgreSQL tools write.
      if ((code === 69 || code === 101) && text.charCodeAt(at + 1) === 39) {
        const { value, end } = quoted(text, at + 1, true);
        push({ kind: "string", text: value, at, end });
        at = end;
      } else {
        const end = wordEnd(text, at);
        push({ kind: "word", text: text.slice(at, end), at, end });
        at = end;
      }
    } else if (isDigit(code) || (code === 46 && isDigit(text.charCodeAt(at + 1)))) {
      const end = numberEnd(text, at);
      const written = text.slice(at, end);
      push({ kind: NUMBER.test(written) ? "number" : "duration", text: written, at, end });
      at = end;
    } else if (code === 39 || code === 34 || code === 96) {
      const { value, end } = quoted(text, at, false);
      push({ kind: code === 39 ? "string" : "quoted", text: value, at, end });
      at = end;
    } else if (code === 45 && text.charCodeAt(at + 1) === 45) {
      const newline = text.indexOf("\n", at);
      at = newline < 0 ? text.length : newline + 1;
    } else if (code === 47 && text.charCodeAt(at + 1) === 42) {
      at = commentEnd(text, at);
    } else if (code === 36 && isDigit(text.charCodeAt(at + 1))) {
      let end = at + 2;
      while (isDigit(text.charCodeAt(end))) end++;
      const number = Number(text.slice(at + 1, end));
      if (number < 1 || number > 65535) throw new SqlError(`Parameter $${number} is out of range: 1 to 65535`, at);
      push({ kind: "parameter", text: String(number), at, end });
      at = end;
    } else if (code === 63) {
      push({ kind: "parameter", text: String(++questionMarks), at, end: at + 1 });
      at++;
    } else if (code === 64 && isWordStart(text.charCodeAt(at + 1))) {
      const end = wordEnd(text, at + 1);
      push({ kind: "variable", text: text.slice(at + 1, end), at, end });
      at = end;
    } else if (code === 35) {
      GEOHASH.lastIndex = at;
      const written = GEOHASH.exec(text)![0];
      push({ kind: "geohash", text: written, at, end: at + written.length });
      at += written.length;
    } else {
      const operator = OPERATORS_BY_FIRST.get(code)?.find((candidate) => text.startsWith(candidate, at));
      if (operator === undefined) {
        if (isFirst && text[at] === "\\") {
          const message = "commands with a backslash belong to psql: use SHOW TABLES and SHOW COLUMNS FROM t";
          throw new SqlError(message, at);
        }
        throw new SqlError(`Unexpected character ${JSON.stringify(String.fromCodePoint(text.codePointAt(at)!))}`, at);
      }
      const end = at + operator.length;
      push({ kind: operator === ";" ? "semicolon" : "operator", text: operator, at, end });
      at = end;
    }
  }
  push({ kind: "end", text: "", at: text.length, end: text.length });
}

function quoted(text: string, at: number, escapes: boolean): { value: string; end: number } {
  const quote = text[at]!;
  let end = at + 1;
  let value = "";
  for (;;) {
    const close = text.indexOf(quote, end);
    if (close < 0) throw new SqlError(`A ${quote === "'" ? "string" : "name"} is not closed: ${quote} is missing`, at);
    if (escapes) {
      const backslash = text.indexOf("\\", end);
      if (backslash >= 0 && backslash < close && backslash + 1 < text.length) {
        const escaped = text[backslash + 1]!;
        value += text.slice(end, backslash) + (ESCAPES[escaped] ?? escaped);
        end = backslash + 2;
        continue;
      }
    }
    value += text.slice(end, close);
    if (text[close + 1] !== quote) return { value, end: close + 1 };
    value += quote;
    end = close + 2;
  }
}

const ESCAPES: Record<string, string> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };

/** Comments may be nested, as in PostgreSQL. */
function commentEnd(text: string, at: number): number {
  BRACKETS.lastIndex = at;
  for (let depth = 0;;) {
    const bracket = BRACKETS.exec(text)?.[0];
    if (bracket === undefined) throw new SqlError("A comment is not closed: */ is missing", at);
    depth += bracket === "/*" ? 1 : -1;
    if (depth === 0) return BRACKETS.lastIndex;
  }
}

const BRACKETS = /\/\*|\*\//g;

function wordEnd(text: string, at: number): number {
  let end = at + 1;
  for (; end < text.length; end++) {
    const code = text.charCodeAt(end);
    if (code >= 128) {
      WORD.lastIndex = at;
      return at + (WORD.exec(text)?.[0].length ?? 1);
    }
    if (!isWordStart(code) && !isDigit(code) && code !== 36) break;
  }
  return end;
}

function numberEnd(text: string, at: number): number {
  // Fast path for plain integers, which are most items of long lists.
  let end = at;
  while (isDigit(text.charCodeAt(end))) end++;
  const next = text.charCodeAt(end);
  if (end > at && (next === 44 || next === 41 || next === 32)) return end;
  NUMBER_LIKE.lastIndex = at;
  end = at + NUMBER_LIKE.exec(text)![0].length;
  // 1.2.3 is one error, not two numbers.
  while (text.charCodeAt(end) === 46 && isDigit(text.charCodeAt(end + 1))) {
    end++;
    while (isDigit(text.charCodeAt(end)) || isWordStart(text.charCodeAt(end))) end++;
  }
  return end;
}

function isSpace(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13) || code === 0xa0 || code === 0xfeff;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** Letters, the underscore and all non-ASCII characters, as in PostgreSQL. */
function isWordStart(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95 || (code >= 128 && !isSpace(code));
}
