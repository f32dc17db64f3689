/** Names and texts as they are written in statements that the server makes. */

/** In double quotes, so that any name can be written. */
export function quotedName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A literal. */
export function quotedText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
