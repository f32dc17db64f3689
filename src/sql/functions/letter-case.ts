/**
 * Changes the case of letters in UTF-8, each alone. A letter whose counterpart has more or fewer units of UTF-16 (ß) stays as it is, and a sigma
 * at the end of a word is as any other.
 */

/** Bytes that a text takes at most after a change, for each byte before: some letters of two bytes have counterparts of three. */
const GROWTH = 2;
const KEPT_BYTES_MAX = 1 << 20;
const UNKNOWN = 0;
const PLANE = 0x10000, LAST_CHARACTER = 0x10ffff;

export class LetterCase {
  /** The counterparts of characters of the basic plane, as they come up. */
  private readonly known = new Uint16Array(PLANE);
  private target = new Uint8Array(4096);

  constructor(private readonly change: (letter: string) => string) {}

  /** The bytes from … to-1 of memory, which do not cut a character, after the change. Valid until the next call. */
  changed(memory: Uint8Array, from: number, to: number): Uint8Array {
    const target = this.targetOf(GROWTH * (to - from));
    let end = 0;
    for (let at = from; at < to;) {
      const first = memory[at++];
      let code = first;
      if (first >= 0xf0) {
        code = (first & 7) << 18 | (memory[at] & 63) << 12 | (memory[at + 1] & 63) << 6 | memory[at + 2] & 63;
        at += 3;
      } else if (first >= 0xe0) {
        code = (first & 15) << 12 | (memory[at] & 63) << 6 | memory[at + 1] & 63;
        at += 2;
      } else if (first >= 0xc0) code = (first & 31) << 6 | memory[at++] & 63;
      const other = this.counterpart(code);
      if (other < 0x80) target[end++] = other;
      else if (other < 0x800) {
        target[end++] = 0xc0 | other >> 6;
        target[end++] = 0x80 | other & 63;
      } else if (other < PLANE) {
        target[end++] = 0xe0 | other >> 12;
        target[end++] = 0x80 | other >> 6 & 63;
        target[end++] = 0x80 | other & 63;
      } else {
        target[end++] = 0xf0 | other >> 18;
        target[end++] = 0x80 | other >> 12 & 63;
        target[end++] = 0x80 | other >> 6 & 63;
        target[end++] = 0x80 | other & 63;
      }
    }
    return target.subarray(0, end);
  }

  /** Of long texts, it is not kept. */
  private targetOf(sizeBytes: number): Uint8Array {
    if (sizeBytes <= this.target.length) return this.target;
    const target = new Uint8Array(2 * sizeBytes);
    return sizeBytes > KEPT_BYTES_MAX ? target : this.target = target;
  }

  private counterpart(code: number): number {
    if (code >= PLANE) return code <= LAST_CHARACTER ? this.find(code) : code;
    const known = this.known[code];
    return known !== UNKNOWN ? known : this.known[code] = this.find(code);
  }

  private find(code: number): number {
    const letter = String.fromCodePoint(code), changed = this.change(letter);
    return changed.length === letter.length ? changed.codePointAt(0)! : code;
  }
}

export const smallLetters = new LetterCase((letter) => letter.toLowerCase());
export const capitalLetters = new LetterCase((letter) => letter.toUpperCase());
