/**
 * A test double of `realFiles`: a file system in memory that tracks what was synced. On request it dies, loses or
 * reorders writes, fails, or becomes full.
 */
import { DiskFullError } from "../errors.ts";
import { type File, type Files, parentOf } from "./files.ts";

const SECTOR_BYTES = 512;

/** Simulates a killed process: thrown at the chosen I/O point and by every call after it. */
export class Died extends Error {
  override readonly name = "Died";
}

type Change = { kind: "write"; position: number; bytes: Uint8Array } | { kind: "truncate"; size: number };

class Content {
  bytes = new Uint8Array(64);
  size = 0;

  apply(change: Change): void {
    if (change.kind === "truncate") {
      if (change.size < this.size) this.bytes.fill(0, change.size, this.size);
      else this.reserve(change.size);
      this.size = change.size;
      return;
    }
    const end = change.position + change.bytes.length;
    this.reserve(end);
    this.bytes.set(change.bytes, change.position);
    this.size = Math.max(this.size, end);
  }

  clone(): Content {
    const copy = new Content();
    copy.bytes = this.bytes.slice(0, Math.max(64, this.size));
    copy.size = this.size;
    return copy;
  }

  private reserve(size: number): void {
    if (size <= this.bytes.length) return;
    const larger = new Uint8Array(Math.max(size, 2 * this.bytes.length));
    larger.set(this.bytes.subarray(0, this.size));
    this.bytes = larger;
  }
}

class Inode {
  current = new Content();
  durable = new Content();
  unsynced: Change[] = [];
}

interface NameChange {
  path: string;
  /** Undefined if the name is removed. */
  to: Inode | "directory" | undefined;
}

export interface Faults {
  /** The process dies at this change of the file system (counted from 1). */
  dieAt?: number;
  /** This sync (counted from 1) fails, and the data that it covered never becomes durable. */
  failSyncAt?: number;
  /** Bytes that fit on the disk. */
  capacityBytes?: number;
  /** Writes may be short. */
  shortWrites?: boolean;
}

export class FaultyFiles implements Files {
  private names = new Map<string, Inode | "directory">();
  private durableNames = new Map<string, Inode | "directory">();
  private unsyncedNames: NameChange[] = [];
  private locks = new Set<string>();
  died = false;
  /** I/O points and syncs so far. */
  points = 0;
  syncs = 0;

  constructor(public faults: Faults = {}, private readonly random: () => number = Math.random) {}

  /**
   * Returns the state that a new process finds after a kill: everything that was written, synced or not. This object is
   * unusable afterwards.
   */
  afterKill(faults: Faults = {}): FaultyFiles {
    const next = new FaultyFiles(faults, this.random);
    next.names = this.names;
    next.durableNames = this.durableNames;
    next.unsyncedNames = this.unsyncedNames;
    return next;
  }

  /** Returns the state after a power cut: everything that was synced, and a random part of what was not. */
  afterPowerCut(faults: Faults = {}): FaultyFiles {
    const mood = this.random();
    const survives = () => (mood < 0.2 ? false : mood < 0.3 ? true : this.random() < 0.5);
    const names = new Map(this.durableNames);
    for (const { path, to } of this.unsyncedNames) {
      if (!survives()) continue;
      if (to === undefined) names.delete(path);
      else names.set(path, to);
    }
    for (const path of names.keys()) {
      const parent = parentOf(path);
      if (parent !== "/" && !names.has(parent)) names.delete(path);
    }
    return this.successor(faults, names, (inode) => {
      const content = inode.durable.clone();
      for (const change of inode.unsynced) {
        if (change.kind === "truncate") {
          if (survives()) content.apply(change);
          continue;
        }
        for (let at = 0; at < change.bytes.length;) {
          const end = Math.min(change.bytes.length, at + SECTOR_BYTES - (change.position + at) % SECTOR_BYTES);
          if (survives()) {
            content.apply({ kind: "write", position: change.position + at, bytes: change.bytes.subarray(at, end) });
          }
          at = end;
        }
      }
      return content;
    });
  }

  /** Returns a copy for inspection. */
  copy(): FaultyFiles {
    return this.successor({}, this.names, ({ current }) => current.clone());
  }

  flipBit(path: string, bit: number): void {
    const { current, durable } = this.inode(path);
    current.bytes[bit >> 3] ^= 1 << (bit & 7);
    if (durable.size > bit >> 3) durable.bytes[bit >> 3] ^= 1 << (bit & 7);
  }

  /** All files, with their sizes. */
  all(): { path: string; sizeBytes: number }[] {
    return [...this.names].flatMap((
      [path, inode],
    ) => (inode === "directory" ? [] : [{ path, sizeBytes: inode.current.size }]));
  }

  usedBytes(): number {
    return this.all().reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  }

  // ---- Files

  open(path: string, mode: "read" | "write" | "create"): File {
    this.checkAlive();
    if (!this.names.has(path)) {
      if (mode !== "create") throw new Error(`ENOENT: ${path}`);
      this.point();
      this.setName(path, new Inode());
    }
    const inode = this.inode(path);
    const write = (buffers: readonly Uint8Array[], position: number) => this.write(path, inode, buffers, position);
    return {
      path,
      read: (into, position) => {
        this.checkAlive();
        const { bytes, size } = inode.current;
        const end = Math.min(size, position + into.length);
        if (end <= position) return 0;
        into.set(bytes.subarray(position, end));
        return end - position;
      },
      write,
      truncate: (size) => {
        this.point();
        this.change(inode, { kind: "truncate", size });
      },
      sync: () => this.sync(inode),
      dataSync: () => this.sync(inode),
      size: () => inode.current.size,
      close() {},
    };
  }

  exists(path: string): boolean {
    this.checkAlive();
    return this.names.has(path);
  }

  rename(from: string, to: string): void {
    this.point();
    const inode = this.inode(from);
    this.setName(to, inode);
    this.setName(from, undefined);
  }

  remove(path: string): void {
    this.point();
    if (this.names.has(path)) this.setName(path, undefined);
  }

  removeDirectory(path: string): void {
    this.checkAlive();
    for (const name of [...this.names.keys()].reverse()) {
      if (name !== path && !name.startsWith(path + "/")) continue;
      this.point();
      this.setName(name, undefined);
    }
  }

  makeDirectory(path: string): void {
    this.checkAlive();
    if (this.names.has(path)) return;
    if (parentOf(path) !== "/") this.makeDirectory(parentOf(path));
    this.point();
    this.setName(path, "directory");
  }

  list(path: string): string[] {
    this.checkAlive();
    return [...this.names.keys()].filter((name) => parentOf(name) === path).map((name) => name.slice(path.length + 1))
      .sort();
  }

  syncDirectory(path: string): void {
    this.countSync();
    const left: NameChange[] = [];
    for (const change of this.unsyncedNames) {
      if (parentOf(change.path) !== path) left.push(change);
      else if (change.to === undefined) this.durableNames.delete(change.path);
      else this.durableNames.set(change.path, change.to);
    }
    this.unsyncedNames = left;
  }

  lock(path: string): { release(): void } | undefined {
    this.checkAlive();
    if (this.locks.has(path)) return undefined;
    this.locks.add(path);
    return { release: () => this.locks.delete(path) };
  }

  // ----

  private successor(
    faults: Faults,
    names: Map<string, Inode | "directory">,
    contentOf: (inode: Inode) => Content,
  ): FaultyFiles {
    const next = new FaultyFiles(faults, this.random);
    const copies = new Map<Inode, Inode>();
    for (const [path, inode] of names) {
      if (inode === "directory") next.names.set(path, inode);
      else {
        let copy = copies.get(inode);
        if (copy === undefined) {
          copies.set(inode, copy = new Inode());
          copy.current = contentOf(inode);
          copy.durable = copy.current.clone();
        }
        next.names.set(path, copy);
      }
    }
    next.durableNames = new Map(next.names);
    return next;
  }

  private inode(path: string): Inode {
    const inode = this.names.get(path);
    if (inode === undefined || inode === "directory") throw new Error(`ENOENT: ${path}`);
    return inode;
  }

  private setName(path: string, to: Inode | "directory" | undefined): void {
    if (to === undefined) this.names.delete(path);
    else this.names.set(path, to);
    this.unsyncedNames.push({ path, to });
  }

  private write(path: string, inode: Inode, buffers: readonly Uint8Array[], position: number): number {
    let size = buffers.reduce((sum, buffer) => sum + buffer.length, 0);
    const dies = this.isLastPoint();
    const { capacityBytes, shortWrites } = this.faults;
    if (dies || (shortWrites && size > 1 && this.random() < 0.5)) size = 1 + Math.floor(this.random() * size);
    if (capacityBytes !== undefined) {
      const freeBytes = Math.max(0, capacityBytes - this.usedBytes() + inode.current.size - position);
      if (size > 0 && freeBytes === 0) throw new DiskFullError(path);
      size = Math.min(size, freeBytes);
    }
    const bytes = new Uint8Array(size);
    let at = 0;
    for (const buffer of buffers) {
      const part = buffer.subarray(0, size - at);
      bytes.set(part, at);
      at += part.length;
    }
    this.change(inode, { kind: "write", position, bytes });
    if (dies) this.die();
    return size;
  }

  private change(inode: Inode, change: Change): void {
    inode.current.apply(change);
    inode.unsynced.push(change);
  }

  private sync(inode: Inode): void {
    try {
      this.countSync();
    } catch (error) {
      // As on Linux: after a failed sync the pages count as clean and are never written.
      if (!(error instanceof Died)) inode.unsynced = [];
      throw error;
    }
    for (const change of inode.unsynced) inode.durable.apply(change);
    inode.unsynced = [];
  }

  private countSync(): void {
    this.point();
    if (++this.syncs === this.faults.failSyncAt) throw new Error("EIO: the sync failed");
  }

  private point(): void {
    if (this.isLastPoint()) this.die();
  }

  private isLastPoint(): boolean {
    this.checkAlive();
    return ++this.points === this.faults.dieAt;
  }

  private die(): never {
    this.died = true;
    throw new Died(`died at I/O point ${this.points}`);
  }

  private checkAlive(): void {
    if (this.died) throw new Died("the process is dead");
  }
}
