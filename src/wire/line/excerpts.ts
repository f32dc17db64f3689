/** Finds and shows single lines of a text. Used only for error messages. */

const LF = 0x0a, QUOTE = 0x22, EQUALS = 0x3d, BACKSLASH = 0x5c;
const BINARY_DOUBLE = 0x10, BINARY_ARRAY = 0x0e, BINARY_DECIMAL = 0x17, ELEMENT_NULL = 0x21;
const SHOWN_BYTES = 500;

/**
 * Offset of line `line`, counted from 1; the text's size if it has fewer lines. Line feeds in binary values do not end
 * a line.
 */
export function offsetOfLine(bytes: Uint8Array, line: number): number {
  for (let at = 0, current = 1, inString = false;; at++) {
    if (current === line && !inString) return at;
    if (at >= bytes.length) return bytes.length;
    const byte = bytes[at];
    if (byte === BACKSLASH) {
      if (bytes[++at] === LF) current++;
    } else if (byte === LF) {
      current++;
      // A bare line feed in a string is an error, and the next line begins after it.
      inString = false;
    } else if (inString) inString = byte !== QUOTE;
    else if (byte === EQUALS) {
      if (bytes[at + 1] === QUOTE) {
        inString = true;
        at++;
      } else if (bytes[at + 1] === EQUALS) at += binarySize(bytes, at + 2);
    }
  }
}

/** Size of the second `=` and the binary value whose type byte is at `at`; 0 if there is none. */
function binarySize(bytes: Uint8Array, at: number): number {
  switch (bytes[at]) {
    case BINARY_DOUBLE:
      return 10;
    case BINARY_DECIMAL:
      return 4 + (bytes[at + 2] ?? 0);
    case BINARY_ARRAY: {
      if (bytes[at + 1] === ELEMENT_NULL) return 3;
      const dimensions = bytes[at + 2] ?? 0, lengths = at + 3;
      if (lengths + 4 * dimensions > bytes.length) return bytes.length - at;
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      let count = 1;
      for (let index = 0; index < dimensions; index++) count *= view.getUint32(lengths + 4 * index, true);
      return 4 + 4 * dimensions + 8 * count;
    }
    default:
      return 0;
  }
}

/** The line as printable text, truncated if it is long. */
export function shownLine(bytes: Uint8Array, line: number): string {
  const from = offsetOfLine(bytes, line), to = offsetOfLine(bytes, line + 1);
  const text = new TextDecoder().decode(bytes.subarray(from, Math.min(to, from + SHOWN_BYTES)));
  // deno-lint-ignore no-control-regex
  const clean = text.replace(/\r?\n$/, "").replaceAll(/[\u0000-\u001f\u007f]/g, "\ufffd");
  return to - from > SHOWN_BYTES ? `${clean}…` : clean;
}

const EXCERPT_LENGTH = 100;

/** The beginning of a text that may be very long, for messages. */
export function excerpt(text: string): string {
  return text.length > EXCERPT_LENGTH ? `${text.slice(0, EXCERPT_LENGTH)}…` : text;
}
