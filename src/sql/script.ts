import { tokenize } from "./lexer.ts";

/** A text's statements, divided at its semicolons; empty ones are left out. Errors in one are relative to its `at`. */
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
