/**
 * Places in the text that the syntax tree does not keep: errors of some clauses stand at a word or at what follows.
 * Without the text they stand at the nearest place that is known.
 */

/** The next token from `from` on, or `atEnd` where nothing follows. */
export function nextToken(text: string | undefined, from: number, atEnd = from): number {
  const rest = text?.slice(from) ?? "";
  const blank = rest.search(/[^\s;]/);
  return text === undefined ? from : blank < 0 ? atEnd : from + blank;
}

/** The first match of `pattern` from `from` on. */
export function placeOf(text: string | undefined, pattern: RegExp, from: number, otherwise = from): number {
  const found = text?.slice(from).search(pattern) ?? -1;
  return found < 0 ? otherwise : from + found;
}

/** The last match of `word` before `before`. */
export function placeBefore(text: string | undefined, word: string, before: number): number {
  const found = text?.toLowerCase().lastIndexOf(word, before) ?? -1;
  return found < 0 ? (Number.isFinite(before) ? before : 0) : found;
}
