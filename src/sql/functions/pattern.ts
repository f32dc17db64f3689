/** LIKE, ILIKE, regular expressions in Java's syntax, glob. */
import { KERNEL_ROWS_MIN } from "./column-kernels.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { BatchColumn, BatchFunction, BatchOut, FunctionContext, FunctionEntry } from "./entry.ts";
import { smallLetters } from "./letter-case.ts";
import { type MemoryViews, offsetOf, viewOf, viewsOf } from "./memory-views.ts";
import { type ByteRegex, byteRegex, RESULT_BYTES_MAX } from "./byte-regex.ts";
import { type Replacement, replacementParts, translateRegex, translateReplacement } from "./java-regex.ts";
import { Pace } from "./pace.ts";
import { textKernels } from "./text-kernels.ts";
import { TextPieces } from "./text-pieces.ts";
import { checkTextLength, fail, PATTERN_UNITS_MAX, shown } from "./sizes.ts";
import { type LinearRegex, linearRegex } from "./linear-regex.ts";

const TEXT = { name: "text", type: "text" };
const PATTERN = { name: "pattern", type: "text" };

/** Tests whether the text memory[from … to) matches. */
type Matcher = (memory: Uint8Array, from: number, to: number, pace: Pace) => boolean;

interface Pattern {
  matches: Matcher;
  /** Set if it is text between two `%`. */
  isPart: boolean;
  /** A kernel looks for the part, ignoring the case of ASCII letters. Texts with this byte may match although it finds nothing. */
  ignoringCase?: { unless?: number };
}

const encoder = new TextEncoder(), decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const ANY_ONE = -1, ANY_MANY = -2;

/** The pattern as bytes and wildcards. A backslash escapes the next character. */
function compileLike(pattern: string): number[] {
  const tokens: number[] = [];
  const characters = [...pattern];
  for (let i = 0; i < characters.length; i++) {
    const character = characters[i];
    if (character === "%") {
      if (tokens.at(-1) !== ANY_MANY) tokens.push(ANY_MANY);
    } else if (character === "_") tokens.push(ANY_ONE);
    else tokens.push(...encoder.encode(character === "\\" && i + 1 < characters.length ? characters[++i] : character));
  }
  return tokens;
}

function matchAt(memory: Uint8Array, at: number, bytes: number[]): boolean {
  for (let i = 0; i < bytes.length; i++) if (memory[at + i] !== bytes[i]) return false;
  return true;
}

/** A kernel compares longer parts byte by byte, and does not look at whether the query is cancelled. */
const PART_BYTES_MAX = 256;
/** The first byte of the Kelvin sign, whose small letter is k. */
const KELVIN_FIRST = 0xe2;

function likePattern(pattern: string): Pattern {
  const isPart = /^%[^%_\\]+%$/.test(pattern) && encoder.encode(pattern).length <= PART_BYTES_MAX;
  return { matches: likeMatcher(pattern), isPart };
}

/** Special cases for plain text, a prefix, a suffix and a substring; everything else needs backtracking. */
function likeMatcher(pattern: string): Matcher {
  const tokens = compileLike(pattern);
  const startsAny = tokens[0] === ANY_MANY, endsAny = tokens.length > 0 && tokens.at(-1) === ANY_MANY;
  const inner = tokens.slice(
    startsAny ? 1 : 0,
    tokens.length - (endsAny && tokens.length > (startsAny ? 1 : 0) ? 1 : 0),
  );
  if (inner.every((token) => token >= 0)) {
    const length = inner.length;
    if (startsAny && length === 0) return () => true;
    if (!startsAny && !endsAny) return (memory, from, to) => to - from === length && matchAt(memory, from, inner);
    if (!startsAny) return (memory, from, to) => to - from >= length && matchAt(memory, from, inner);
    if (!endsAny) return (memory, from, to) => to - from >= length && matchAt(memory, to - length, inner);
    const first = inner[0];
    return (memory, from, to, pace) => {
      for (let at = from; at + length <= to; at++) {
        if (memory[at] !== first) continue;
        if (matchAt(memory, at, inner)) return true;
        pace.spend(length);
      }
      return false;
    };
  }
  return (memory, from, to, pace) => matchTokens(tokens, memory, from, to, pace);
}

/** Backtracks only to the last `%`: the time is linear in text length times pattern length. */
function matchTokens(tokens: number[], memory: Uint8Array, from: number, to: number, pace: Pace): boolean {
  let at = from, token = 0, backToken = -1, backAt = 0;
  while (at < to) {
    const wanted = tokens[token];
    if (wanted === ANY_MANY) {
      backToken = ++token;
      backAt = at;
    } else if (token < tokens.length && (wanted === ANY_ONE || wanted === memory[at])) {
      at += wanted === ANY_ONE ? sequenceLength(memory[at]) : 1;
      token++;
    } else if (backToken >= 0) {
      pace.spend(1 + at - backAt);
      backAt += sequenceLength(memory[backAt]);
      at = backAt;
      token = backToken;
    } else {
      return false;
    }
  }
  while (tokens[token] === ANY_MANY) token++;
  return token === tokens.length;
}

function sequenceLength(byte: number): number {
  return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

function ilikePattern(pattern: string): Pattern {
  const bytes = encoder.encode(pattern),
    matches = likeMatcher(decoder.decode(smallLetters.changed(bytes, 0, bytes.length)));
  return {
    matches: (memory, from, to, pace) => {
      const small = smallLetters.changed(memory, from, to);
      return matches(small, 0, small.length, pace);
    },
    isPart: likePattern(pattern).isPart && /^[\0-\x7f]*$/.test(pattern),
    ignoringCase: { unless: /k/i.test(pattern) ? KELVIN_FIRST : undefined },
  };
}

function checkPatternLength({ length }: string, context: FunctionContext): void {
  if (length > PATTERN_UNITS_MAX) {
    fail(`a pattern of ${length} characters is too long: at most ${PATTERN_UNITS_MAX} are allowed`, context);
  }
}

/**
 * Caches what is compiled from a constant pattern, for each call site. Patterns from columns are compiled for each row.
 */
function compiled<T>(kind: string, pattern: string, context: FunctionContext, make: () => T): T {
  const key = `${kind} ${pattern}`;
  let made = context.state.get(key) as T | undefined;
  if (made === undefined) {
    checkPatternLength(pattern, context);
    context.poll();
    if (context.state.size > 256) context.state.clear();
    context.state.set(key, made = make());
  }
  return made;
}

function matching(kind: string, make: (pattern: string) => Pattern): BatchFunction {
  return ([column, patterns], out, rowCount, context) => {
    const views = viewsOf(context.heap.u8);
    const pace = new Pace(context);
    let pattern: Pattern | undefined;
    const test = (row: number) => {
      const length = column.values[2 * row + 1];
      const from = offsetOf(column, row);
      const memory = viewOf(views, column, row);
      const passes = pattern !== undefined && length >= 0 && pattern.matches(memory, from, from + length, pace);
      out.values[row] = passes ? 1 : 0;
      pace.spend(16 + length);
    };
    for (let row = 0; row < rowCount; row++) {
      if (row === 0 || !patterns.isConstant) {
        const text = patterns.text(row);
        pattern = text === undefined ? undefined : compiled(kind, text, context, () => make(text));
        if (pattern?.isPart && patterns.isConstant) {
          return findPart(pattern, [column, patterns], out, rowCount, context, test);
        }
      }
      test(row);
    }
  };
}

/** Rows between two looks at whether the query is cancelled. */
const STEP_ROWS = 512;

/** Tests rows by a kernel for a part, and by `test` if it cannot. */
function findPart(
  { ignoringCase }: Pattern,
  [column, patterns]: BatchColumn[],
  out: BatchOut,
  rowCount: number,
  { heap, poll }: FunctionContext,
  test: (row: number) => void,
): void {
  const { contains } = textKernels(heap.memory), views = viewsOf(heap.u8), unless = ignoringCase?.unless;
  const part = patterns.values[0] + 1, length = patterns.values[1] - 2;
  for (let row = 0; row < rowCount;) {
    const to = Math.min(rowCount, row + STEP_ROWS);
    const end = contains(column.address, row, to, out.address, part, length, ignoringCase === undefined ? 0 : 1);
    if (unless !== undefined) {
      for (let tested = row; tested < end; tested++) {
        if (out.values[tested] === 0 && hasByte(views, column, tested, unless)) test(tested);
      }
    }
    if (end < to) test(end);
    row = end < to ? end + 1 : end;
    poll();
  }
}

function hasByte(views: MemoryViews, column: BatchColumn, row: number, byte: number): boolean {
  const memory = viewOf(views, column, row), from = offsetOf(column, row), to = from + column.values[2 * row + 1];
  for (let at = from; at < to; at++) if (memory[at] === byte) return true;
  return false;
}

function regexMatching(whenMatches: boolean): BatchFunction {
  return ([column, patterns], out, rowCount, context) => {
    const views = viewsOf(context.heap.u8);
    const pace = new Pace(context);
    let regex: LinearRegex | undefined;
    for (let row = 0; row < rowCount; row++) {
      if (row === 0 || !patterns.isConstant) {
        const pattern = patterns.text(row);
        regex = pattern === undefined
          ? undefined
          : compiled("regex", pattern, context, () => javaRegex(pattern, false));
      }
      const text = regex === undefined ? undefined : shortText(views, column, row);
      const passes = regex !== undefined && (text !== undefined && regex.test(text)) === whenMatches;
      out.values[row] = passes ? 1 : 0;
      pace.spend(256 + (text?.length ?? 0));
    }
  };
}

const units: number[] = [];

/** The text of a row. Short ASCII texts are decoded here, because a decoder's call costs more. */
function shortText(views: MemoryViews, column: BatchColumn, row: number): string | undefined {
  const length = column.values[2 * row + 1];
  if (length < 0) return undefined;
  if (length > 64) return column.text(row);
  const memory = viewOf(views, column, row), from = offsetOf(column, row);
  units.length = length;
  for (let i = 0; i < length; i++) {
    const byte = memory[from + i];
    if (byte > 127) return column.text(row);
    units[i] = byte;
  }
  return String.fromCharCode.apply(null, units);
}

function javaRegex(pattern: string, keepsGroups: boolean): LinearRegex {
  const translated = translateRegex(pattern, keepsGroups);
  // Constants were checked when the call was bound.
  if ("problem" in translated) {
    const message = `the pattern ${shown(pattern)} is invalid: ${translated.problem}`;
    throw new SqlError(message, 0, SQLSTATE.invalidParameter);
  }
  return linearRegex(translated.source, translated.flags, keepsGroups);
}

/** The position is within the pattern's text, after the opening quote. */
const checkRegex = (keepsGroups: boolean): FunctionEntry["check"] => ([, pattern]) => {
  if (typeof pattern !== "string") return undefined;
  const translated = translateRegex(pattern, keepsGroups);
  return "problem" in translated
    ? { argument: 1, offset: translated.offset + 1, message: `the pattern is invalid: ${translated.problem}` }
    : undefined;
};

const regexpReplace: BatchFunction = (args, out, rowCount, context) => {
  const [column, patterns, replacements] = args;
  const pace = new Pace(context), isConstant = patterns.isConstant && replacements.isConstant;
  let regex: LinearRegex | undefined;
  let by: Replacement | undefined;
  const one = (row: number) => {
    const text = column.text(row);
    if (text !== undefined && (regex === undefined || !isConstant)) {
      const pattern = patterns.text(row),
        replacement = replacements.text(row),
        isNull = pattern === undefined || replacement === undefined;
      regex = isNull ? undefined : compiled("replace", pattern, context, () => javaRegex(pattern, true));
      by = isNull ? undefined : compiled("by", replacement, context, () => translateReplacement(replacement));
    }
    if (text === undefined || regex === undefined || by === undefined) return out.setNull(row);
    const made = new TextPieces(context);
    const put = by;
    // Tracks the length of the result, so that it is never built if it becomes too long.
    let length = text.length, last = 0;
    regex.each(text, (found, index, names) => {
      const replaced = found[0]!.length, piece = put(found, names);
      pace.spend(64 + piece.length);
      length += piece.length - replaced;
      if (length > text.length) checkTextLength("regexp_replace", length, context);
      made.add(text.slice(last, index));
      made.add(piece);
      last = index + replaced;
    });
    made.add(text.slice(last));
    out.setText(row, made.text());
    pace.spend(256 + text.length);
  };
  const simple = isConstant ? simpleRegex(args, rowCount, context) : undefined;
  if (simple !== undefined) return replaceByKernel(simple, column, out, rowCount, context, one);
  for (let row = 0; row < rowCount; row++) one(row);
};

const NOT_SIMPLE = "not simple";

/** The kernel of a constant expression and replacement, if they have one. */
function simpleRegex(
  [, patterns, replacements]: BatchColumn[],
  rowCount: number,
  { heap, state }: FunctionContext,
): ByteRegex | undefined {
  let simple = state.get("bytes") as ByteRegex | typeof NOT_SIMPLE | undefined;
  if (simple === undefined && rowCount >= KERNEL_ROWS_MIN) {
    const pattern = patterns.text(0), replacement = replacements.text(0);
    const translated = pattern === undefined ? undefined : translateRegex(pattern, true);
    if (translated !== undefined && "source" in translated && replacement !== undefined) {
      simple = byteRegex(heap.memory, translated.source, translated.flags, replacementParts(replacement));
    }
    state.set("bytes", simple ??= NOT_SIMPLE);
  }
  return simple === NOT_SIMPLE ? undefined : simple;
}

/** Of the space that the results of a kernel get at once. */
const RESULTS_BYTES = 65_536;
/** Rows between two looks at whether the query is cancelled: expressions try a text several times. */
const REPLACED_ROWS = 256;

/** Replaces by a kernel, and by `other` where it cannot. */
function replaceByKernel(
  { replace, scratch }: ByteRegex,
  column: BatchColumn,
  out: BatchOut,
  rowCount: number,
  { heap, poll }: FunctionContext,
  other: (row: number) => void,
): void {
  const own = (out.reserve(scratch.length + 7) + 7 & -8) >>> 0;
  heap.u8.set(scratch, own);
  let at = 0, limit = 0;
  for (let row = 0; row < rowCount; poll()) {
    const end = replace(column.address, row, Math.min(rowCount, row + REPLACED_ROWS), out.address, at, limit, own);
    at = heap.u32[own >>> 2];
    if (end > row) row = end;
    else if (limit - at < RESULT_BYTES_MAX) {
      at = out.reserve(RESULTS_BYTES);
      limit = at + RESULTS_BYTES;
    } else other(row++);
  }
}

/** `*`, `?` and `[a-c]`, matched against the whole text. */
function globRegex(pattern: string): LinearRegex {
  let source = "";
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern[i];
    if (character === "*") source += "[^]*";
    else if (character === "?") source += "[^]";
    else if (character === "[") {
      const close = pattern.indexOf("]", i + 2);
      if (close < 0) source += "\\[";
      else {
        const inside = pattern.slice(i + 1, close);
        source += `[${(inside[0] === "!" ? "^" + inside.slice(1) : inside).replace(/[\\\]]/g, "\\$&")}]`;
        i = close;
      }
    } else source += character.replace(/[\\^$.|?*+()[\]{}/]/g, "\\$&");
  }
  return linearRegex(`^${source}$`, "u", false);
}

const globMatching: BatchFunction = ([column, patterns]: BatchColumn[], out, rowCount, context) => {
  const pace = new Pace(context);
  for (let row = 0; row < rowCount; row++) {
    const text = column.text(row), pattern = patterns.text(row);
    pace.spend(256 + (text?.length ?? 0));
    out.values[row] = text !== undefined && pattern !== undefined && compiled("glob", pattern, context, () =>
        globRegex(pattern)).test(text)
      ? 1
      : 0;
  }
};

function entry(
  name: string,
  summary: string,
  batch: BatchFunction,
  examples: [string, unknown][],
  more: Partial<FunctionEntry> = {},
): FunctionEntry {
  return {
    name,
    args: [TEXT, PATTERN],
    returns: "BOOLEAN",
    nulls: "custom",
    volatility: "immutable",
    summary,
    examples: examples.map(([sql, gives]) => ({ sql, gives })),
    batch,
    ...more,
  };
}

export const patternFunctions: FunctionEntry[] = [
  entry(
    "like",
    "True if the text matches the pattern: % stands for any text and _ for one character.",
    matching("like", likePattern),
    [["'abc' LIKE 'a_c'", true], ["'100%' LIKE '%\\%'", true]],
  ),
  entry("ilike", "As LIKE, ignoring case.", matching("ilike", ilikePattern), [[
    "'ABC' ILIKE 'ab%'",
    true,
  ]]),
  entry(
    "~",
    "True if the text contains a match of the regular expression (Java's syntax, without look-around and back references).",
    regexMatching(true),
    [["'cat' ~ 'dog|cat'", true]],
    {
      check: checkRegex(false),
    },
  ),
  entry("!~", "True if the text contains no match of the regular expression (Java's syntax).", regexMatching(false), [[
    "'x1' !~ '\\d'",
    false,
  ]], {
    check: checkRegex(false),
  }),
  entry(
    "glob",
    "True if the text matches the pattern: * stands for any text, ? for one character and [..] for one of a set.",
    globMatching,
    [["glob('abcd', 'a*d')", true]],
  ),
  entry(
    "regexp_replace",
    "The text with every match of a regular expression (Java's syntax) replaced; $1 is the first group.",
    regexpReplace,
    [["regexp_replace('john smith', '(\\w+) (\\w+)', '$2, $1')", "smith, john"]],
    {
      args: [TEXT, PATTERN, { name: "by", type: "text" }],
      returns: "STRING",
      check: checkRegex(true),
    },
  ),
];
