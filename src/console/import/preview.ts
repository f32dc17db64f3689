/** The first lines of a CSV file, for the eye. The server finds its delimiter and types, and reads the file itself. */

/** Read from the file's start. */
export const PREVIEW_BYTES = 65_536;
const LINES_MAX = 6;

/** Values by line. */
export function previewOf(text: string, delimiter: string): string[][] {
  const lines: string[][] = [[]];
  const value = new RegExp(
    `(?:"((?:[^"]|"")*)"|([^${delimiter}\\r\\n]*))(${delimiter === "|" ? "\\|" : delimiter}|\\r\\n|[\\r\\n]|$)`,
    "g",
  );
  for (const { 0: whole, 1: quoted, 2: plain = "", 3: end } of text.matchAll(value)) {
    if (whole === "") break;
    lines.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end === delimiter) continue;
    if (lines.length === LINES_MAX) break;
    lines.push([]);
  }
  return lines.filter((line) => line.length > 0);
}

/** Derives a table name from the file name. */
export function tableNameOf(fileName: string): string {
  const stem = fileName.replace(/\.[^.]*$/, "").replace(/[^\p{L}\p{N}_]+/gu, "_").replace(/^_+|_+$/g, "");
  return stem === "" ? "imported" : stem;
}
