/** The memory of one operator. */
import { assert } from "../../assert.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import type { QueryContext, QueryMemory } from "../contract.ts";

/** Rows between two polls of the cancel word. */
export const POLL_ROWS = 4_096;

/** Memory that belongs to one operator; `release` frees what remains. */
export class Workspace {
  private readonly blocks = new Map<number, number>();

  constructor(readonly heap: SharedHeap, readonly memory: QueryMemory, readonly operator: string) {}

  static of(context: QueryContext, operator: string): Workspace {
    return new Workspace(context.heap, context.memory, operator);
  }

  allocate(sizeBytes: number): number {
    const size = Math.max(8, sizeBytes);
    const address = this.memory.allocate(size, this.operator);
    this.blocks.set(address, size);
    return address;
  }

  free(address: number): void {
    const size = this.blocks.get(address);
    assert(size !== undefined, "a block is freed by the workspace that allocated it");
    this.blocks.delete(address);
    this.memory.free(address, size);
  }

  /** A block as i32 words, with undefined contents. */
  words(count: number): Int32Array {
    const address = this.allocate(count * 4);
    return this.heap.i32.subarray(address >>> 2, (address >>> 2) + count);
  }

  bytes(count: number): Uint8Array {
    const address = this.allocate(count);
    return this.heap.u8.subarray(address, address + count);
  }

  freeWords(view: Int32Array | Uint8Array | Uint32Array | Float64Array): void {
    this.free(view.byteOffset);
  }

  /** Returns a longer copy of `view` and frees the old one. The new words contain `fill`. */
  grow(view: Int32Array, count: number, fill = 0): Int32Array {
    const longer = this.words(count);
    longer.set(view);
    longer.fill(fill, view.length);
    this.freeWords(view);
    return longer;
  }

  /** Passes all blocks to another owner. */
  leave(): [address: number, sizeBytes: number][] {
    const blocks = [...this.blocks];
    this.blocks.clear();
    return blocks;
  }

  release(): void {
    // To clear a map makes a new one.
    if (this.blocks.size === 0) return;
    for (const [address, size] of this.blocks) this.memory.free(address, size);
    this.blocks.clear();
  }
}
