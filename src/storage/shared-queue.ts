/**
 * Messages from one thread to another, in order. Small ones are copied through shared memory, which takes a microsecond; larger ones go
 * through a message port, where an empty entry of the queue stands for them.
 *
 *     words     bytes written, bytes taken, wakes, each in its own cache line; then the ring
 *     entry     u32: size of the message in bytes, 0 for one in the port; the message; entries begin at multiples of 8
 */
import { receiveMessageOnPort } from "node:worker_threads";
import { align } from "./bytes.ts";

/** Words by offset. The counts wrap around at 2³². */
const WRITTEN = 0, TAKEN = 16, WAKES = 32;
const RING_AT = 192;
/** A power of two. */
const RING_BYTES = 128 << 10;
/** Copying smaller messages twice takes less time than posting them. */
export const MESSAGE_BYTES_MAX = 16 << 10;
const SIZE_BYTES = Uint32Array.BYTES_PER_ELEMENT;

/** One end of a queue. The other one has the same buffer, and the other port of the channel. */
export class SharedQueue {
  private readonly words: Int32Array;
  private readonly ring: Uint8Array;
  private readonly sizes: Uint32Array;
  /** What does not fit at the moment, at the sender. */
  private readonly unsent: ArrayBuffer[][] = [];

  constructor(buffer: SharedArrayBuffer, private readonly port: MessagePort) {
    this.words = new Int32Array(buffer, 0, RING_AT / Int32Array.BYTES_PER_ELEMENT);
    this.ring = new Uint8Array(buffer, RING_AT, RING_BYTES);
    this.sizes = new Uint32Array(buffer, RING_AT, RING_BYTES / SIZE_BYTES);
  }

  static buffer(): SharedArrayBuffer {
    return new SharedArrayBuffer(RING_AT + RING_BYTES);
  }

  // The sender's side

  /**
   * Adds a message of one or more buffers, which may be moved. Returns false if it waits for room: then `flush` has to be called
   * until it returns true.
   */
  send(buffers: ArrayBuffer[]): boolean {
    if (!this.hasUnsent && this.put(buffers)) return true;
    this.unsent.push(buffers);
    return false;
  }

  get hasUnsent(): boolean {
    return this.unsent.length > 0;
  }

  flush(): boolean {
    while (this.hasUnsent && this.put(this.unsent[0])) this.unsent.shift();
    return !this.hasUnsent;
  }

  private put(buffers: ArrayBuffer[]): boolean {
    const written = Atomics.load(this.words, WRITTEN), used = written - Atomics.load(this.words, TAKEN) >>> 0;
    const [{ byteLength }] = buffers, isSmall = buffers.length === 1 && byteLength <= MESSAGE_BYTES_MAX;
    const entryBytes = align(SIZE_BYTES + (isSmall ? byteLength : 0), 8);
    if (used + entryBytes > RING_BYTES) return false;
    const at = written & RING_BYTES - 1;
    if (isSmall) {
      const from = at + SIZE_BYTES, bytes = new Uint8Array(buffers[0]), beforeEnd = RING_BYTES - from;
      if (byteLength <= beforeEnd) this.ring.set(bytes, from);
      else {
        this.ring.set(bytes.subarray(0, beforeEnd), from);
        this.ring.set(bytes.subarray(beforeEnd), 0);
      }
    } else this.port.postMessage(buffers, buffers);
    this.sizes[at / SIZE_BYTES] = isSmall ? byteLength : 0;
    Atomics.store(this.words, WRITTEN, written + entryBytes);
    return true;
  }

  // The receiver's side

  get isEmpty(): boolean {
    return Atomics.load(this.words, WRITTEN) === Atomics.load(this.words, TAKEN);
  }

  /** Takes the next message. Undefined if there is none. */
  receive(): ArrayBuffer[] | undefined {
    if (this.isEmpty) return undefined;
    const taken = Atomics.load(this.words, TAKEN), at = taken & RING_BYTES - 1;
    const sizeBytes = this.sizes[at / SIZE_BYTES];
    const buffers = sizeBytes === 0 ? this.receivePosted() : [this.copy(at + SIZE_BYTES, sizeBytes)];
    Atomics.store(this.words, TAKEN, taken + align(SIZE_BYTES + sizeBytes, 8));
    return buffers;
  }

  private copy(from: number, sizeBytes: number): ArrayBuffer {
    const bytes = new Uint8Array(sizeBytes), beforeEnd = RING_BYTES - from;
    bytes.set(this.ring.subarray(from, from + Math.min(sizeBytes, beforeEnd)));
    if (sizeBytes > beforeEnd) bytes.set(this.ring.subarray(0, sizeBytes - beforeEnd), beforeEnd);
    return bytes.buffer;
  }

  private receivePosted(): ArrayBuffer[] {
    const port = this.port as unknown as Parameters<typeof receiveMessageOnPort>[0];
    return receiveMessageOnPort(port)!.message;
  }

  // For a receiver that may not block

  /** The sender's side: wakes the receiver. */
  wake(): void {
    Atomics.add(this.words, WAKES, 1);
    Atomics.notify(this.words, WAKES);
  }

  /** Call before `receive`. */
  get wakes(): number {
    return Atomics.load(this.words, WAKES);
  }

  /** Resolves at the first wake after `wakes`. */
  async nextWake(wakes: number): Promise<void> {
    const waiting = Atomics.waitAsync(this.words, WAKES, wakes);
    if (waiting.async) await waiting.value;
  }
}
