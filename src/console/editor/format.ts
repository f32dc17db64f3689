/** Formatting of SQL. The formatter is loaded when it is first used. */

/** Throws where the text cannot be read. */
export async function formatted(text: string): Promise<string> {
  const { format } = await import("./formatter.ts");
  return format(text);
}
