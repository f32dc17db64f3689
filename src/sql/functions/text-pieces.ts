/** A text that is built from any number of pieces. */
import { Buffer } from "node:buffer";
import type { FunctionContext } from "./entry.ts";
import { grownBytes } from "./sizes.ts";

const PENDING_UNITS = 16_384;
const encoder = new TextEncoder();
const NO_BYTES = new Uint8Array(0);

/**
 * V8 keeps a concatenation as a tree of its pieces until it is read, which takes 32 bytes for each piece that are not
 * charged. So pieces are converted to bytes in groups of thousands, and these are charged before they are allocated.
 */
export class TextPieces {
  private pending = "";
  private bytes: Uint8Array<ArrayBuffer> = NO_BYTES;
  private used = 0;

  constructor(private readonly context: Pick<FunctionContext, "memory">) {}

  add(piece: string): void {
    this.pending += piece;
    if (this.pending.length > PENDING_UNITS) this.encode();
  }

  /** The whole text, in a form that `BatchOut.setText` accepts. */
  text(): string | Uint8Array {
    if (this.used === 0) return this.pending;
    this.encode();
    return this.bytes.subarray(0, this.used);
  }

  private encode(): void {
    const end = this.used + Buffer.byteLength(this.pending);
    this.bytes = grownBytes(this.bytes, this.used, end, this.context.memory);
    encoder.encodeInto(this.pending, this.bytes.subarray(this.used));
    this.used = end;
    this.pending = "";
  }
}
