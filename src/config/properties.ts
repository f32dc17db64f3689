/** One `key=value` of a Java properties file, with the line it began on (from 1). */
export interface Property {
  key: string;
  value: string;
  line: number;
}

/**
 * Reads a Java properties file: `key=value`, `key: value` or `key value`; `#` and `!` begin comments; a backslash at
 * the end of a line joins the next one; `\t \n \r \f \uXXXX` and `\` before any other character are escapes.
 * One difference: a backslash before a letter that is not an escape is kept, so that Windows paths can be written
 * unchanged.
 * @see https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/util/Properties.html#load(java.io.Reader)
 */
export function parseProperties(text: string): Property[] {
  const properties: Property[] = [];
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  for (let at = 0; at < lines.length; at++) {
    const line = at + 1;
    let logical = lines[at]!.trimStart();
    if (logical === "" || logical[0] === "#" || logical[0] === "!") continue;
    while (/(?<!\\)(\\\\)*\\$/.test(logical) && at + 1 < lines.length) {
      logical = logical.slice(0, -1) + lines[++at]!.trimStart();
    }
    const match = /^((?:[^\\=:\s]|\\.)*)\s*[=:]?\s*(.*)$/s.exec(logical)!;
    properties.push({ key: unescape(match[1]!), value: unescape(match[2]!).trimEnd(), line });
  }
  return properties;
}

const ESCAPES: Record<string, string> = { t: "\t", n: "\n", r: "\r", f: "\f" };

function unescape(text: string): string {
  return text.replace(/\\(?:u([0-9a-fA-F]{4})|(.))/gs, (all, hex, char) => {
    if (hex !== undefined) return String.fromCharCode(parseInt(hex, 16));
    return ESCAPES[char] ?? (/[A-Za-z0-9]/.test(char) ? all : char);
  });
}
