/** A text made of any number of pieces. */
import { Buffer } from "node:buffer";
import type { FunctionContext } from "./entry.ts";
import { grownBytes } from "./sizes.ts";

const PENDING_UNITS = 16_384;
const encoder = new TextEncoder();

/**
 * V8 keeps a concatenation as a tree of its pieces until it is read, 32 bytes for each one, which nothing charges. So they become bytes
 * by the thousands, and those are charged before they are made.
 */
export class TextPieces {
  private pending = "";
  private bytes = new Uint8Array(0);
  private used = 0;

  constructor(private readonly context: Pick<FunctionContext, "memory">) {}

  add(piece: string): void {
    this.pending += piece;
    if (this.pending.length > PENDING_UNITS) this.encode();
  }

  /** All of them, in a form that `BatchOut.setText` takes. */
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
