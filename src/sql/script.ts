import { tokenize } from "./lexer.ts";

/**
 * Splits a text at its semicolons into statements and omits empty ones. Error positions are relative to `at` of the
 * statement.
 */
export function splitScript(text: string): { text: string; at: number }[] {
  const statements: { text: string; at: number }[] = [];
  let start: number | undefined;
  for (const token of tokenize(text)) {
    if (token.kind === "semicolon" || token.kind === "end") {
      if (start !== undefined) statements.push({ text: text.slice(start, token.at).trimEnd(), at: start });
      start = undefined;
    } else start ??= token.at;
  }
  return statements;
}
