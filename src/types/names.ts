/** Names of tables and columns: how they are compared, and what new ones may not have. */

/** Names are compared without case and in one Unicode form, NFC: what looks the same is the same. */
export function nameKey(name: string): string {
  const lower = name.toLowerCase();
  return isAscii(lower) ? lower : lower.normalize("NFC");
}

/** Such a name has one form only. */
export function isAscii(name: string): boolean {
  // deno-lint-ignore no-control-regex
  return /^[\u0000-\u007f]*$/.test(name);
}

export function sameName(a: string, b: string): boolean {
  return a === b || nameKey(a) === nameKey(b);
}

/** The one of that name. Older roots may have several that are the same today: the spelling tells them apart. */
export function findNamed<T extends { name: string }>(all: readonly T[], name: string): T | undefined {
  const lower = name.toLowerCase();
  return all.find((each) => each.name.toLowerCase() === lower) ?? all.find((each) => sameName(each.name, name));
}

/** Controls, signs without a width, such as those that turn the direction of writing, and halves of characters. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/** Why a new table or column may not have a name that is not seen as it is; older roots may have such names. */
export function hiddenCharacterFault(name: string): string | undefined {
  const hidden = HIDDEN.exec(name);
  if (hidden === null) return undefined;
  const code = hidden[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
  return `a name cannot have the invisible character U+${code}, found at ${hidden.index}`;
}
