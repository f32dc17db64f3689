/**
 * Converts between bytes and ASCII strings. TextDecoder rejects shared memory, so short texts are converted character
 * by character.
 */

export function decodeAscii(bytes: Uint8Array, from: number, to: number): string {
  let text = "";
  for (let i = from; i < to; i++) text += String.fromCharCode(bytes[i]!);
  return text;
}

let scratch = new Uint8Array(256);

/** The text as bytes, valid until the next call; undefined if it is not ASCII. */
export function encodeAscii(text: string): Uint8Array | undefined {
  if (text.length > scratch.length) scratch = new Uint8Array(text.length * 2);
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 127) return undefined;
    scratch[i] = code;
  }
  return scratch;
}
