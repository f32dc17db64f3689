import { SqlError, SQLSTATE } from "../errors.ts";
import { readTokens } from "./lexer.ts";

/** Each takes memory while the text is carried out. */
const STATEMENTS_MAX = 1_000_000;

/**
 * Splits a text at its semicolons into statements and omits empty ones. Error positions are relative to `at` of the
 * statement.
 */
export function splitScript(text: string): { text: string; at: number }[] {
  const statements: { text: string; at: number }[] = [];
  let start: number | undefined;
  readTokens(text, (token) => {
    if (token.kind === "semicolon" || token.kind === "end") {
      if (start !== undefined) statements.push({ text: text.slice(start, token.at).trimEnd(), at: start });
      start = undefined;
    } else if (start === undefined && statements.length === STATEMENTS_MAX) {
      const message = `The text has too many statements: at most ${STATEMENTS_MAX} are allowed`;
      throw new SqlError(message, token.at, SQLSTATE.programLimitExceeded);
    } else start ??= token.at;
  });
  return statements;
}
