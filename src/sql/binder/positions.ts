/**
 * Positions in the text that the syntax tree does not keep. The errors of some clauses are at a keyword or at the next
 * token. Without the text, the nearest known position is used.
 */

/** The position of the next token from `from` on, or `atEnd` if there is none. */
export function nextToken(text: string | undefined, from: number, atEnd = from): number {
  const rest = text?.slice(from) ?? "";
  const blank = rest.search(/[^\s;]/);
  return text === undefined ? from : blank < 0 ? atEnd : from + blank;
}

/** The position of the first match of `pattern` from `from` on. */
export function positionOf(text: string | undefined, pattern: RegExp, from: number, otherwise = from): number {
  const found = text?.slice(from).search(pattern) ?? -1;
  return found < 0 ? otherwise : from + found;
}
