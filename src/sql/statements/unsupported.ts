/** Statements of the dialect and of PostgreSQL that are not implemented. */
import { isWord, type Token } from "../lexer.ts";

/** By their first words. */
const UNSUPPORTED: readonly [words: string[], name: string][] = [
  [["BACKUP", "TABLE"], "BACKUP TABLE"],
  [["PREPARE"], "PREPARE"],
  [["EXECUTE"], "EXECUTE"],
  [["LISTEN"], "LISTEN"],
  [["NOTIFY"], "NOTIFY"],
  [["FETCH"], "FETCH"],
  [["MOVE"], "MOVE"],
];
const BY_FIRST_WORD = Map.groupBy(UNSUPPORTED, ([[first]]) => first);

/** Words after the name of a cursor. */
const CURSOR_WORDS = ["CURSOR", "BINARY", "ASENSITIVE", "INSENSITIVE", "NO", "SCROLL"];

/** Words that may follow a table's name at the beginning of a query: a table may be called by one of the words above. */
const AFTER_TABLE = ["WHERE", "ORDER", "LIMIT", "SAMPLE", "LATEST", "GROUP", "UNION", "EXCEPT", "INTERSECT", "JOIN"];

/** The name of the unsupported statement in this range of tokens. */
export function unsupportedStatement(tokens: readonly Token[], from: number, to: number): string | undefined {
  const first = tokens[from]!, next = from + 1 < to ? tokens[from + 1] : undefined;
  if (first.kind !== "word") return undefined;
  const word = first.text.toUpperCase();
  // Any other DECLARE is one of variables.
  if (word === "DECLARE" && isWord(tokens[from + 2], ...CURSOR_WORDS)) return "DECLARE of a cursor";
  const found = BY_FIRST_WORD.get(word)?.find(([words]) =>
    words.every((word, index) => from + index < to && isWord(tokens[from + index], word))
  );
  if (found === undefined) return undefined;
  const [words, name] = found, isTable = next === undefined || isWord(next, ...AFTER_TABLE);
  return words.length === 1 && isTable ? undefined : name;
}
