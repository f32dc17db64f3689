/** Names of tables and columns: their comparison, and characters that new ones must not contain. */

/** Names are compared case-insensitively and in Unicode normal form NFC, so that names that look the same are equal. */
export function nameKey(name: string): string {
  const lower = name.toLowerCase();
  return isAscii(lower) ? lower : lower.normalize("NFC");
}

/** True for names that are the same in all normal forms. */
export function isAscii(name: string): boolean {
  // deno-lint-ignore no-control-regex
  return /^[\u0000-\u007f]*$/.test(name);
}

export function sameName(a: string, b: string): boolean {
  return a === b || nameKey(a) === nameKey(b);
}

/**
 * Returns the item with that name. Older databases may contain several names that are equal today; these are
 * distinguished by their spelling.
 */
export function findNamed<T extends { name: string }>(all: readonly T[], name: string): T | undefined {
  const lower = name.toLowerCase();
  return all.find((each) => each.name.toLowerCase() === lower) ?? all.find((each) => sameName(each.name, name));
}

/**
 * Control characters, characters without width (such as those that change the direction of writing), and lone
 * surrogates.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/**
 * Returns the error if the name of a new table or column has hidden characters. Older databases may contain such names.
 */
export function hiddenCharacterFault(name: string): string | undefined {
  const hidden = HIDDEN.exec(name);
  if (hidden === null) return undefined;
  const code = hidden[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
  return `a name cannot have the invisible character U+${code}, found at ${hidden.index}`;
}
