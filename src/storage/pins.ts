/**
 * The versions of the catalogue that readers may use. Main tells the writer, which frees what none of them has.
 *
 * Main has one version at a time, and pins it for queries. Before main proceeds to the next version, it puts the pinned one in a slot of
 * the shared memory. The writer reads main's version first and then the slots, so it knows all pins of versions before. If all
 * slots are taken, main says that it still has the version that would need one: then more is kept, and nothing is freed too early.
 */
import { PIN_SLOTS, SHARED_WORD, type SharedHeap } from "./heap.ts";

const SEEN = SHARED_WORD.seenVersion / 2;
const SLOTS = SHARED_WORD.pinnedVersions / 2;

/** Main's side. */
export class Pins {
  /** The current one. */
  version = 0;
  /** Number of pins by version. */
  private readonly counts = new Map<number, number>();
  private readonly slotOf = new Map<number, number>();
  private readonly freeSlots = Array.from({ length: PIN_SLOTS }, (_, k) => PIN_SLOTS - 1 - k);
  /** Pinned versions without a slot, in ascending order: the current one, and those for which there was none. */
  private readonly others = new Set<number>();

  constructor(private readonly heap: SharedHeap) {}

  /** Number of pinned versions. */
  get count(): number {
    return this.counts.size;
  }

  /** Pins the current version until the returned function is called. */
  add(): () => void {
    const { version } = this, count = this.counts.get(version) ?? 0;
    this.counts.set(version, count + 1);
    if (count === 0) this.others.add(version);
    let isHeld = true;
    return () => {
      if (isHeld) this.remove(version);
      isHeld = false;
    };
  }

  /** Makes `version` the current one. */
  proceed(version: number): void {
    this.version = version;
    this.tell();
  }

  private remove(version: number): void {
    const left = this.counts.get(version)! - 1;
    if (left > 0) return void this.counts.set(version, left);
    this.counts.delete(version);
    const slot = this.slotOf.get(version);
    if (slot === undefined) this.others.delete(version);
    else {
      this.slotOf.delete(version);
      this.freeSlots.push(slot);
      this.store(slot, 0);
    }
    this.tell();
  }

  private tell(): void {
    let seen = this.version;
    for (const version of this.others) {
      if (version === this.version) break;
      const slot = this.freeSlots.pop();
      if (slot === undefined) {
        seen = version;
        break;
      }
      this.others.delete(version);
      this.slotOf.set(version, slot);
      this.store(slot, version);
    }
    Atomics.store(this.heap.i64, SEEN, BigInt(seen));
  }

  private store(slot: number, version: number): void {
    Atomics.store(this.heap.i64, SLOTS + slot, BigInt(version));
    Atomics.add(this.heap.i32, SHARED_WORD.pinChanges, 1);
  }
}

/** The writer's side, as of the last `look`. */
export class VersionsInUse {
  /** Readers may use it and any later one. */
  seen = 0;
  /** Versions before that are pinned, and perhaps later ones, in ascending order. */
  private pinned: readonly number[] = [];
  private changes = 0;

  constructor(private readonly heap: SharedHeap) {}

  look(): void {
    const { i32, i64 } = this.heap;
    this.seen = Number(Atomics.load(i64, SEEN));
    const changes = Atomics.load(i32, SHARED_WORD.pinChanges);
    if (changes === this.changes) return;
    this.changes = changes;
    const found: number[] = [];
    for (let slot = 0; slot < PIN_SLOTS; slot++) {
      const version = Number(Atomics.load(i64, SLOTS + slot));
      if (version > 0) found.push(version);
    }
    this.pinned = found.sort((a, b) => a - b);
  }

  get oldest(): number {
    return Math.min(this.seen, this.pinned[0] ?? Infinity);
  }

  isPinned(version: number): boolean {
    return this.pinned.includes(version);
  }

  /** A pinned version from `since` on and before `until`, which is at most `seen`. */
  pinnedWithin(since: number, until: number): number | undefined {
    const first = this.pinned.find((version) => version >= since);
    return first !== undefined && first < until ? first : undefined;
  }
}
