/** Reads the payloads of blocks whose location is known. */
import { CorruptFileError } from "../../errors.ts";
import { crc32 } from "../bytes.ts";
import { type File, type Files, readFully } from "../files.ts";
import type { BlockLocation } from "./format.ts";

/** Blocks with at most this gap between them are read together, up to the maximum. */
const READ_GAP_BYTES = 16 << 10, READ_BYTES_MAX = 4 << 20;

/** Reads payloads of blocks that may be far apart, such as those of one table among a thousand. */
export class BlockReader {
  private file: File | undefined;
  private window = new Uint8Array(0);
  private start = 0;

  constructor(private readonly files: Files) {}

  /**
   * Returns the payload of `blocks[k]` and reads ahead for its successors. @throws {CorruptFileError} when it is
   * damaged.
   */
  payload(blocks: readonly BlockLocation[], k: number): Uint8Array {
    const { path, payloadAt, payloadSize, payloadCrc, lsn } = blocks[k];
    if (this.file?.path !== path) {
      this.close();
      this.file = this.files.open(path, "read");
    }
    if (payloadAt < this.start || payloadAt + payloadSize > this.start + this.window.length) this.read(blocks, k);
    const bytes = this.window.subarray(payloadAt - this.start, payloadAt - this.start + payloadSize);
    if (bytes.length < payloadSize || crc32(bytes) !== payloadCrc) {
      throw new CorruptFileError(path, `block ${lsn} at byte ${payloadAt} is damaged`);
    }
    return bytes;
  }

  close(): void {
    this.file?.close();
    this.file = undefined;
    this.window = new Uint8Array(0);
  }

  /**
   * Payloads, and thus views of them, begin at multiples of 8. A new window each time, because views of the last one
   * may be in use.
   */
  private read(blocks: readonly BlockLocation[], first: number): void {
    this.start = blocks[first].payloadAt;
    let end = this.start + blocks[first].payloadSize;
    for (let k = first + 1; k < blocks.length; k++) {
      const { path, payloadAt, payloadSize } = blocks[k];
      const next = payloadAt + payloadSize;
      if (path !== blocks[first].path || payloadAt > end + READ_GAP_BYTES || next > this.start + READ_BYTES_MAX) break;
      end = next;
    }
    const window = new Uint8Array(end - this.start);
    this.window = window.subarray(0, readFully(this.file!, window, this.start));
  }
}
