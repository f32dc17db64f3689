/** Column names from the header of a file. */

/**
 * Removes characters that are not allowed in a column name. The letter after them becomes a capital. `a b` → `aB`, `1x`
 * → `_1x`. An empty name becomes `f` and the column's index.
 */
export function columnNameOf(text: string, index: number): string {
  let name = "", isStart = false;
  for (const character of text.trim()) {
    if (/[\p{L}\p{N}_$]/u.test(character)) {
      name += isStart && name !== "" ? character.toUpperCase() : character;
      isStart = false;
    } else isStart = true;
  }
  if (name === "") return `f${index}`;
  return /^\p{N}/u.test(name) ? `_${name}` : name;
}
