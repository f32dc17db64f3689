/** Formats SQL. The formatter is loaded on first use. */

/** Throws if the text cannot be parsed. */
export async function formatted(text: string): Promise<string> {
  const { format } = await import("./formatter.ts");
  return format(text);
}
