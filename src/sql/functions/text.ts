/**
 * Text functions. Lengths and positions count UTF-16 units, as clients of the dialect expect, although texts are UTF-8. ASCII, the
 * usual case, is processed bytewise, and substrings of an argument are views of it.
 */
import { Pace } from "./pace.ts";
import { text as ir } from "../../engine/compiler/ir.ts";
import { NULL_I32, NULL_I64, typeOf } from "../../types/mod.ts";
import { arrayDimensions, decimalOf, geohashBits } from "../../types/wide.ts";
import type { BatchColumn, BatchFunction, BatchOut, FunctionContext, FunctionEntry } from "./entry.ts";
import { batchEntry } from "./batch-entry.ts";
import { checkTextLength, fail, TEXT_BYTES_MAX } from "./sizes.ts";
import { quotedName } from "../quoting.ts";
import { RowText } from "./text-casts.ts";
import { capitalLetters, type LetterCase, smallLetters } from "./letter-case.ts";
import { textKernels } from "./text-kernels.ts";
import { KERNEL_ROWS_MIN } from "./column-kernels.ts";
import { COLUMNS_MAX, joinTexts, type Pieces } from "./concat-kernel.ts";
import { writeTexts } from "./text-cast-kernels.ts";
import { baseOf, dataViewsOf, HALF, type MemoryViews, offsetOf, viewOf, viewsOf } from "./memory-views.ts";

type Args = FunctionEntry["args"];
const TEXT: Args[number] = { name: "text", type: "text" };

/** Substrings keep the text type; new texts are STRING. */
const pieceType = (types: string[]) => (types[0] === "VARCHAR" ? "VARCHAR" : "STRING");
/** Of texts that are made of the arguments at these indices: VARCHAR if all of these are. */
const madeOf = (...indices: number[]) => (types: string[]) =>
  indices.every((index) => types[index] === undefined || types[index] === "VARCHAR") ? "VARCHAR" : "STRING";

/** Length in bytes; negative for null. */
function bytesIn(column: BatchColumn, row: number): number {
  return column.values[2 * row + 1];
}

/** What a character beyond U+FFFF counts: one in VARCHAR for length, left and right, else two units of UTF-16. */
const unitsBeyond = ({ type }: BatchColumn): number => (type === "VARCHAR" ? 1 : UTF16_UNITS);
const UTF16_UNITS = 2;

/** Number of units of UTF-8 bytes. */
function unitsIn(memory: Uint8Array, from: number, to: number, beyond = UTF16_UNITS): number {
  let units = 0;
  for (let i = from; i < to; i++) {
    const byte = memory[i];
    if ((byte & 0xc0) !== 0x80) units += byte >= 0xf0 ? beyond : 1;
  }
  return units;
}

/** Address `count` units after `from`; `to` if there are fewer. */
function skipUnits(memory: Uint8Array, from: number, to: number, count: number, beyond = UTF16_UNITS): number {
  let i = from;
  while (count > 0 && i < to) {
    const byte = memory[i];
    i += byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    count -= byte >= 0xf0 ? beyond : 1;
  }
  return Math.min(i, to);
}

/** Calls `one` for the rows in which no text argument is null. */
function rows(
  one: (
    row: number,
    args: BatchColumn[],
    out: BatchOut,
    views: MemoryViews,
    context: FunctionContext,
    pace: Pace,
  ) => void,
): BatchFunction {
  return (args, out, rowCount, context) => {
    const texts = args.filter(isTextual);
    const views = viewsOf(context.heap.u8);
    const pace = new Pace(context);
    for (let row = 0; row < rowCount; row++) {
      let steps = 16;
      let isNull = false;
      for (const column of texts) {
        const bytes = bytesIn(column, row);
        if (bytes < 0) isNull = true;
        else steps += bytes;
      }
      if (isNull) out.setNull(row);
      else one(row, args, out, views, context, pace);
      pace.spend(steps);
    }
  };
}

function isTextual(column: BatchColumn): boolean {
  return column.type === "STRING" || column.type === "VARCHAR" || column.type === "SYMBOL" ||
    column.type === "SYMBOL_TEXT" || column.type === "NULL";
}

/** Short texts are built here and copied; long ones are built in place. */
const scratch = new Uint8Array(4096);
const PIECE_BYTES = 16_384;

/** Piece by piece, because a single call over a long text could not be cancelled. */
function changeCase(letters: LetterCase): BatchFunction {
  return rows((row, [column], out, views, context, pace) => {
    const memory = viewOf(views, column, row), from = offsetOf(column, row), to = from + bytesIn(column, row);
    if (to - from <= PIECE_BYTES) return out.setText(row, letters.changed(memory, from, to));
    context.memory.need(4 * (to - from));
    const pieces: Uint8Array[] = [];
    for (let at = from, end; at < to; at = end) {
      end = Math.min(to, at + PIECE_BYTES);
      while (end < to && isContinued(memory[end])) end++;
      pieces.push(letters.changed(memory, at, end).slice());
      pace.spend(4 * PIECE_BYTES);
    }
    const bytes = out.makeText(row, pieces.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const piece of pieces) {
      bytes.set(piece, at);
      at += piece.length;
    }
  });
}

/** The byte is not the first one of a character. */
const isContinued = (byte: number) => (byte & 0xc0) === 0x80;

function trimmed(left: boolean, right: boolean): BatchFunction {
  return rows((row, [column], out, views) => {
    const memory = viewOf(views, column, row);
    let from = offsetOf(column, row), to = from + bytesIn(column, row);
    while (left && from < to && memory[from] === 32) from++;
    while (right && to > from && memory[to - 1] === 32) to--;
    out.setView(row, baseOf(column, row) + from, to - from);
  });
}

function leftOrRight(isLeft: boolean): BatchFunction {
  return rows((row, [column, counts], out, views) => {
    const memory = viewOf(views, column, row), base = baseOf(column, row);
    const count = counts.values[row];
    if (count === NULL_I32) return out.setNull(row);
    const from = offsetOf(column, row), to = from + bytesIn(column, row);
    const beyond = unitsBeyond(column), units = unitsIn(memory, from, to, beyond);
    const taken = Math.max(0, count < 0 ? units + count : Math.min(count, units));
    const cut = skipUnits(memory, from, to, isLeft ? taken : units - taken, beyond);
    if (isLeft) out.setView(row, base + from, cut - from);
    else out.setView(row, base + cut, to - cut);
  });
}

/** Copies a constant needle out of shared memory once, for all rows. */
function needleOf(column: BatchColumn, row: number, context: FunctionContext): Uint8Array {
  if (!column.isConstant) return column.bytes(row)!;
  const key = `needle ${column.constant}`;
  let bytes = context.state.get(key) as Uint8Array | undefined;
  if (bytes === undefined) context.state.set(key, bytes = new TextEncoder().encode(String(column.constant)));
  return bytes;
}

const strpos: BatchFunction = (args, out, rowCount, context) => {
  const views = viewsOf(context.heap.u8);
  const [column, needles] = args;
  const pace = new Pace(context);
  for (let row = 0; row < rowCount; row++) {
    if (bytesIn(column, row) < 0 || bytesIn(needles, row) < 0) {
      out.values[row] = NULL_I32;
      continue;
    }
    const memory = viewOf(views, column, row);
    const from = offsetOf(column, row), to = from + bytesIn(column, row);
    const at = find(memory, from, to, needleOf(needles, row, context), pace);
    out.values[row] = at < 0 ? 0 : unitsIn(memory, from, at) + 1;
  }
};

/**
 * Offset of `needle` in memory[from … to), or -1. A loop, because `indexOf` over the whole memory would search far
 * beyond the text.
 */
function find(memory: Uint8Array, from: number, to: number, needle: Uint8Array, pace: Pace): number {
  const length = needle.length;
  if (length === 0) return from;
  const first = needle[0];
  for (let i = from; i + length <= to; i++) {
    if (memory[i] !== first) continue;
    let k = 1;
    while (k < length && memory[i + k] === needle[k]) k++;
    if (k === length) {
      pace.spend(16 + i - from);
      return i;
    }
    pace.spend(k);
  }
  pace.spend(16 + to - from);
  return -1;
}

function pad(isLeft: boolean): BatchFunction {
  return rows((row, [column, lengths, fills], out, _, context) => {
    const wanted = lengths.values[row];
    if (wanted === NULL_I32 || wanted < 0) return out.setNull(row);
    if (wanted > TEXT_BYTES_MAX) fail(`the text would be too long: ${wanted} characters`, context);
    context.memory.need(2 * wanted);
    const text = column.text(row)!;
    const fill = fills === undefined ? " " : fills.text(row)!;
    // A text that is too long keeps its end if it would be padded there.
    const isWhole = wanted <= text.length || fill === "";
    if (isWhole) out.setText(row, isLeft ? text.slice(0, wanted) : text.slice(Math.max(0, text.length - wanted)));
    else out.setText(row, isLeft ? text.padStart(wanted, fill) : text.padEnd(wanted, fill));
  });
}

/** Number of non-overlapping occurrences. */
function occurrences(memory: Uint8Array, from: number, to: number, needle: Uint8Array, pace: Pace): number {
  let count = 0;
  for (let at = find(memory, from, to, needle, pace); at >= 0; count++) {
    at = find(memory, at + needle.length, to, needle, pace);
  }
  return count;
}

/** A loop copies short runs faster. */
function copy(memory: Uint8Array, from: number, to: number, target: Uint8Array, at: number): void {
  if (to - from > 64) target.set(memory.subarray(from, to), at);
  else for (let i = from; i < to; i++) target[at++] = memory[i];
}

const concat: BatchFunction = (args, out, rowCount, context) => {
  const views = viewsOf(context.heap.u8);
  const pace = new Pace(context);
  const others = args.map((column) => isTextual(column) ? undefined : new RowText(column, context));
  const one = (row: number) => {
    let length = 0;
    for (let k = 0; k < args.length; k++) {
      const text = others[k];
      if (text === undefined) length += Math.max(0, bytesIn(args[k], row));
      else {
        readPiece(text, args[k], row);
        length += Math.max(0, text.length);
      }
    }
    const bytes = length > scratch.length ? out.makeText(row, length) : scratch;
    let at = 0;
    for (let k = 0; k < args.length; k++) {
      const column = args[k], text = others[k];
      if (text !== undefined) {
        const piece = text.bytes;
        for (let i = 0; i < text.length; i++) bytes[at++] = piece[i];
      } else if (bytesIn(column, row) > 0) {
        const from = offsetOf(column, row), size = bytesIn(column, row);
        copy(viewOf(views, column, row), from, from + size, bytes, at);
        at += size;
        pace.spend(size >>> 2);
      }
    }
    if (bytes === scratch) out.setText(row, bytes.subarray(0, length));
    pace.spend(16);
  };
  if (rowCount < KERNEL_ROWS_MIN || args.length > COLUMNS_MAX) {
    for (let row = 0; row < rowCount; row++) one(row);
    return;
  }
  const pieces = args.map((column, k) => piecesOf(column, others[k], out, rowCount, context));
  joinTexts(pieces, out, rowCount, context, one);
};

/** The texts of a column. Those that are made for it have the lifetime of the result. */
function piecesOf(
  column: BatchColumn,
  text: RowText | undefined,
  out: BatchOut,
  rowCount: number,
  context: FunctionContext,
): Pieces {
  const step = column.isConstant ? 0 : 8;
  if (text === undefined) return { pairs: column.address, step, noneAt: 0, noneLength: 0 };
  const { u8 } = context.heap, words = dataViewsOf(context.heap.buffer);
  const stored = (bytes: Uint8Array) => {
    const at = out.reserve(bytes.length);
    u8.set(bytes, at);
    return at;
  };
  const count = column.isConstant ? 1 : rowCount, pairs = out.reserve(8 * count);
  const one = (row: number) => {
    readPiece(text, column, row);
    const at = stored(text.bytes.subarray(0, Math.max(0, text.length))), pair = pairs + 8 * row;
    const isHigh = pair >= HALF, view = isHigh ? words.high : words.low, offset = isHigh ? pair - HALF : pair;
    view.setUint32(offset, at, true);
    view.setInt32(offset + 4, text.length, true);
  };
  writeTexts(column, { address: pairs, reserve: (sizeBytes) => out.reserve(sizeBytes) }, count, context, one);
  const none = nullPiece(column) ?? NO_PIECE;
  return { pairs, step, noneAt: stored(none), noneLength: none.length };
}

const NO_PIECE = new Uint8Array(0);

const COUNT: Args[number] = { name: "count", type: "INT" };

export const textFunctions: FunctionEntry[] = [
  batchEntry("length", [TEXT], "INT", "The number of characters; -1 for null.", ([column], out, rowCount, context) => {
    textKernels(context.heap.memory).length(column.address, 0, rowCount, out.address, unitsBeyond(column));
  }, [["length('žluťoučký')", 9], ["length(cast(null as string))", -1]]),
  batchEntry("length_bytes", [TEXT], "INT", "The number of bytes in UTF-8; -1 for null.", undefined, [[
    "length_bytes('ďábel')",
    7,
  ]], { emit: ([a]) => ir.length(a) }),
  ...["upper", "to_uppercase"].map((name) =>
    batchEntry(name, [TEXT], "STRING", "The text in capital letters.", changeCase(capitalLetters), [[
      `${name}('ďábel')`,
      "ĎÁBEL",
    ]])
  ),
  ...["lower", "to_lowercase"].map((name) =>
    batchEntry(name, [TEXT], "STRING", "The text in small letters.", changeCase(smallLetters), [[
      `${name}('Hello')`,
      "hello",
    ]])
  ),
  batchEntry("trim", [TEXT], pieceType, "The text without blanks at both ends.", trimmed(true, true), [[
    "trim('  a b ')",
    "a b",
  ]]),
  batchEntry("ltrim", [TEXT], pieceType, "The text without blanks at the start.", trimmed(true, false), [[
    "ltrim('  a ')",
    "a ",
  ]]),
  batchEntry("rtrim", [TEXT], pieceType, "The text without blanks at the end.", trimmed(false, true), [[
    "rtrim('  a ')",
    "  a",
  ]]),
  batchEntry(
    "left",
    [TEXT, COUNT],
    pieceType,
    "The first characters. A negative count omits that many at the end.",
    leftOrRight(true),
    [["left('abcdef', -2)", "abcd"]],
  ),
  batchEntry(
    "right",
    [TEXT, COUNT],
    pieceType,
    "The last characters. A negative count omits that many at the start.",
    leftOrRight(false),
    [["right('abcdef', 2)", "ef"]],
  ),
  batchEntry(
    "substring",
    [TEXT, { name: "start", type: "INT" }, { name: "length", type: "INT" }],
    "STRING",
    "A number of characters from position start, counted from 1. Positions before the first character count but give nothing.",
    rows((row, [column, starts, lengths], out, views, context) => {
      const start = starts.values[row], length = lengths.values[row];
      if (start === NULL_I32 || length === NULL_I32) return out.setNull(row);
      if (length < 0) fail("substring: the length must not be negative", context);
      const memory = viewOf(views, column, row);
      const from = offsetOf(column, row), to = from + bytesIn(column, row);
      const last = start + length - 1;
      const first = skipUnits(memory, from, to, Math.max(0, start - 1));
      const end = skipUnits(memory, from, to, Math.max(0, last));
      out.setView(row, baseOf(column, row) + first, Math.max(0, end - first));
    }),
    [["substring('abcdef', 0, 3)", "ab"]],
    {
      fallible: 2,
      check: (
        [, , length],
      ) => (typeof length === "number" && length < 0 && length !== NULL_I32
        ? { message: "substring: the length must not be negative" }
        : undefined),
    },
  ),
  ...["strpos", "position"].map((name) =>
    batchEntry(
      name,
      [TEXT, { name: "part", type: "text" }],
      "INT",
      "The position of the part, counted from 1; 0 if it is not found.",
      strpos,
      [[`${name}('Hello World', 'World')`, 7]],
    )
  ),
  batchEntry(
    "replace",
    [TEXT, { name: "part", type: "text" }, { name: "by", type: "text" }],
    madeOf(0, 1, 2),
    "The text with every occurrence of a part replaced.",
    rows((row, [column, parts, bys], out, views, context, pace) => {
      const memory = viewOf(views, column, row);
      const from = offsetOf(column, row), to = from + bytesIn(column, row);
      const part = needleOf(parts, row, context);
      const count = part.length === 0 ? 0 : occurrences(memory, from, to, part, pace);
      if (count === 0) return out.setView(row, baseOf(column, row) + from, to - from);
      const by = bys.bytes(row)!;
      const length = to - from + count * (by.length - part.length);
      if (length > to - from) checkTextLength("replace", length, context);
      const bytes = out.makeText(row, length);
      for (let at = from, written = 0;;) {
        const next = find(memory, at, to, part, pace);
        const end = next < 0 ? to : next;
        copy(memory, at, end, bytes, written);
        if (next < 0) break;
        written += end - at;
        bytes.set(by, written);
        written += by.length;
        at = next + part.length;
      }
    }),
    [["replace('aaa', 'aa', 'b')", "ba"]],
  ),
  batchEntry(
    "split_part",
    [TEXT, { name: "delimiter", type: "text" }, { name: "index", type: "INT" }],
    madeOf(0, 1),
    "The piece between delimiters at an index, counted from 1, or from the end if negative. Empty if there is none.",
    rows((row, [column, delimiters, indexes], out, views, context, pace) => {
      const index = indexes.values[row];
      if (index === NULL_I32) return out.setNull(row);
      if (index === 0) fail("split_part: the index must not be 0", context);
      const memory = viewOf(views, column, row);
      const from = offsetOf(column, row), to = from + bytesIn(column, row);
      const delimiter = needleOf(delimiters, row, context);
      const after = (at: number) => delimiter.length === 0 ? -1 : find(memory, at, to, delimiter, pace);
      const pieces = index > 0 || delimiter.length === 0 ? 1 : 1 + occurrences(memory, from, to, delimiter, pace);
      let place = index > 0 ? index : pieces + 1 + index;
      let start = from, end = after(start);
      for (; place > 1 && end >= 0; place--) {
        start = end + delimiter.length;
        end = after(start);
      }
      if (place !== 1) out.setView(row, baseOf(column, row) + to, 0);
      else out.setView(row, baseOf(column, row) + start, (end < 0 ? to : end) - start);
    }),
    [["split_part('x/y/z', '/', -1)", "z"]],
    {
      fallible: 2,
      check: (
        [, , index],
      ) => (index === 0 ? { argument: 2, message: "split_part: the index must not be 0" } : undefined),
    },
  ),
  batchEntry(
    "lpad",
    [TEXT, COUNT, { name: "fill", type: "text", optional: true }],
    madeOf(0, 2),
    "The text padded at the start to a length in characters. A longer text is cut to its first characters.",
    pad(true),
    [["lpad('ab', 5, '*-')", "*-*ab"]],
  ),
  batchEntry(
    "rpad",
    [TEXT, COUNT, { name: "fill", type: "text", optional: true }],
    madeOf(0, 2),
    "The text padded at the end to a length in characters. A longer text is cut to its last characters.",
    pad(false),
    [["rpad('ab', 4)", "ab  "], ["rpad('abcd', 3)", "bcd"]],
  ),
  batchEntry(
    "starts_with",
    [TEXT, { name: "start", type: "text" }],
    "BOOLEAN",
    "True if the text begins with the prefix.",
    ([column, starts], out, rowCount, context) => {
      const views = viewsOf(context.heap.u8);
      for (let row = 0; row < rowCount; row++) {
        const length = bytesIn(starts, row);
        let holds = bytesIn(column, row) >= length && length >= 0;
        const memory = viewOf(views, column, row), others = viewOf(views, starts, row);
        const from = offsetOf(column, row), other = offsetOf(starts, row);
        for (let i = 0; holds && i < length; i++) holds = memory[from + i] === others[other + i];
        out.values[row] = holds ? 1 : 0;
      }
    },
    [["starts_with('abc', 'ab')", true]],
  ),
  batchEntry(
    "reverse",
    [TEXT],
    "STRING",
    "The characters in reverse order.",
    rows((row, [column], out, views) => {
      const memory = viewOf(views, column, row);
      const from = offsetOf(column, row), to = from + bytesIn(column, row);
      const bytes = out.makeText(row, to - from);
      // Reverse character by character, keeping the order of each one's bytes.
      for (let at = from, left = to - from; at < to;) {
        let next = at + 1;
        while (next < to && (memory[next] & 0xc0) === 0x80) next++;
        left -= next - at;
        for (let i = 0; at < next; i++, at++) bytes[left + i] = memory[at];
      }
    }),
    [["reverse('abc')", "cba"]],
  ),
  batchEntry(
    "repeat",
    [TEXT, COUNT],
    "STRING",
    "The text repeated a number of times.",
    rows((row, [column, counts], out, _, context) => {
      const count = counts.values[row];
      if (count === NULL_I32) return out.setNull(row);
      const once = bytesIn(column, row), length = Math.max(0, count) * once;
      checkTextLength("repeat", length, context);
      const bytes = out.makeText(row, length);
      if (length === 0) return;
      bytes.set(column.bytes(row)!);
      for (let made = once; made < length; made *= 2) bytes.copyWithin(made, 0, Math.min(made, length - made));
    }),
    [["repeat('ab', 3)", "ababab"]],
  ),
  batchEntry(
    "quote_ident",
    [TEXT],
    "STRING",
    "The text as an identifier, in double quotes if necessary.",
    rows((row, [column], out, _, context) => {
      const text = column.text(row)!;
      context.memory.need(4 * text.length);
      out.setText(row, /^[\p{L}\p{N}_$]*$/u.test(text) ? text : quotedName(text));
    }),
    [["quote_ident('two words')", '"two words"']],
  ),
  ...["concat", "||"].map((name): FunctionEntry => ({
    check: (_, types) => {
      const argument = types.findIndex((type) =>
        type === "BINARY" || geohashBits(type) !== undefined || arrayDimensions(type) > 0
      );
      return argument < 0 ? undefined : { argument, message: `${name}: ${typeOf(types[argument]).name} has no text` };
    },
    ...batchEntry(
      name,
      [{ name: "value", type: "any", variadic: true }],
      "STRING",
      "The values as one text. Null texts are omitted, null numbers are written.",
      concat,
      name === "concat" ? [["concat('a', 1, 2.5, true, null)", "a12.5true"]] : [["'n' || 5", "n5"]],
    ),
  })),
];

/** Representation of nulls in concat, as in QuestDB. Nulls of other types are skipped. */
const NULL_PIECES: Record<string, Uint8Array> = Object.fromEntries(
  Object.entries({ INT: "null", LONG: "null", DATE: "null", FLOAT: "NaN", DOUBLE: "NaN", IPv4: "0.0.0.0" })
    .map(([type, text]) => [type, new TextEncoder().encode(text)]),
);

/** DATE is printed as milliseconds. */
function readPiece(text: RowText, column: BatchColumn, row: number): void {
  if (column.type === "DATE" && column.values[row] !== NULL_I64) {
    return text.set(new TextEncoder().encode(String(column.values[row])));
  }
  text.read(row);
  if (text.length < 0) text.set(nullPiece(column));
}

const nullPiece = ({ type }: BatchColumn): Uint8Array | undefined =>
  NULL_PIECES[decimalOf(type) === undefined ? type : "LONG"];
