/**
 * `PARQUET(encoding, codec(level), BLOOM_FILTER)` of a column: how it is stored in Parquet partitions. It is checked and
 * has no effect, as all partitions are native.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { displayName } from "../binder/types.ts";
import { at, given, list, wholeNumber, word } from "../tree-nodes.ts";
import type { Form } from "./statement.ts";

interface Word {
  at: number;
  text: string;
  level?: { at: number; value: number };
}

export interface ParquetOption {
  /** Offset of the opening parenthesis's successor, for the error of an empty list. */
  at: number;
  words: Word[];
}

export const parquetParts: Pick<Form, "grammar" | "actions"> = {
  grammar: String.raw`
  parquetOption = "PARQUET" "(" parquetWord ("," parquetWord)* ")"
  parquetWord = name ("(" "<number>" ")")?`,
  actions: {
    parquetOption(_parquet, _open, first, _commas, rest, _close): ParquetOption {
      return { at: at(first), words: list(first, rest) };
    },
    parquetWord(name, _open, number, _close): Word {
      const level = given(number) ? { at: at(number.child(0)), value: wholeNumber(number.child(0)) } : undefined;
      return { at: at(name), text: word(name), level };
    },
  },
};

const TEXTS = ["STRING", "VARCHAR", "BINARY"];
const FRACTIONS = ["FLOAT", "DOUBLE", "UUID", "LONG256", "BOOLEAN", "SYMBOL", ...TEXTS];

/** Encodings, and whether they are for columns of a type. */
const ENCODINGS: Record<string, (type: string) => boolean> = {
  default: () => true,
  plain: () => true,
  rle_dictionary: (type) => type !== "BOOLEAN" && !type.endsWith("[]"),
  delta_length_byte_array: (type) => TEXTS.includes(type),
  delta_binary_packed: (type) => !FRACTIONS.includes(type) && !type.endsWith("[]") && !type.startsWith("DECIMAL"),
};

/** Codecs with the range of their levels. */
const CODECS: Record<string, readonly [from: number, to: number] | undefined> = {
  uncompressed: undefined,
  snappy: undefined,
  lz4_raw: undefined,
  gzip: [0, 9],
  brotli: [0, 11],
  zstd: [1, 22],
};

const BLOOM_FILTER = "bloom_filter";

/** @throws {SqlError} at the word at fault. */
export function checkParquetOption({ words }: ParquetOption, type: string): void {
  const [encoding, codec, ...rest] = words.at(-1)!.text === BLOOM_FILTER ? words.slice(0, -1) : words;
  if (encoding !== undefined) checkEncoding(encoding, type);
  if (codec !== undefined) checkCodec(codec);
  if (rest[0] === undefined) return;
  throw new SqlError("PARQUET takes an encoding, a codec and BLOOM_FILTER", rest[0].at, SQLSTATE.syntax);
}

function checkEncoding({ at, text, level }: Word, type: string): void {
  const known = Object.keys(ENCODINGS).filter((name) => ENCODINGS[name]!(type));
  if (!known.includes(text)) {
    const problem = text in ENCODINGS ? `${text} cannot encode ${displayName(type)}` : `there is no encoding ${text}`;
    throw new SqlError(`${problem}: expected ${known.join(", ")}`, at, SQLSTATE.invalidParameter);
  }
  if (level !== undefined) throw new SqlError("an encoding has no level", level.at, SQLSTATE.syntax);
}

function checkCodec({ at, text, level }: Word): void {
  if (!(text in CODECS)) {
    const message = `there is no codec ${text}: expected ${Object.keys(CODECS).join(", ")}`;
    throw new SqlError(message, at, SQLSTATE.invalidParameter);
  }
  const range = CODECS[text];
  if (level === undefined || range === undefined || level.value >= range[0] && level.value <= range[1]) return;
  const message = `the level of ${text} must be between ${range[0]} and ${range[1]}`;
  throw new SqlError(message, level.at, SQLSTATE.invalidParameter);
}
