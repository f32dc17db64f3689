/**
 * The records of access control. Log blocks and definitions of tables change them, and a checkpoint writes all of them into one of
 * two slots. Only the access layer interprets them.
 *
 *     payload   format version u32, LSN of the last block that concerned them (size), count u32, then key and text of each
 */
import { changesOf, type RecordChange, type TableEvent } from "../access/mod.ts";
import { CorruptFileError, SqlError, SQLSTATE } from "../errors.ts";
import { ByteReader, ByteWriter } from "./bytes.ts";
import type { AccessChange } from "./contract.ts";
import { type Files, join } from "./files.ts";
import { checkFormat, FORMAT_VERSION } from "./format.ts";
import { readSlots, syncSlot, writeSlot } from "./slots.ts";

/** The records for readers, or their changes. */
export interface AccessPublication {
  /** All records in the form of the checkpoint, after a start: copying bytes is much faster than copying many texts. */
  stored?: Uint8Array;
  /** Later changes. */
  changes: RecordChange[];
}

export class AccessRecords {
  /** Generation of the newest durable slot; 0 if none has been written. */
  generation = 0;
  private appliedLsn = 0;
  private isChanged = false;
  /** The loaded slot's payload, until the records are needed. Many starts do not need them. */
  private stored: Uint8Array | undefined;
  private decoded = new Map<string, string>();
  private unpublished: AccessPublication = { changes: [] };
  /** Records replaced since the last savepoint, with their old texts. */
  private replaced: [key: string, text: string | undefined][] | undefined;

  /** LSN of the last block that changed the records. */
  get lsn(): number {
    return this.appliedLsn;
  }

  /** True if changed since the last checkpoint. */
  get changed(): boolean {
    return this.isChanged;
  }

  get hasUnpublished(): boolean {
    return this.unpublished.stored !== undefined || this.unpublished.changes.length > 0;
  }

  private get records(): Map<string, string> {
    if (this.stored !== undefined) {
      this.decoded = decodeRecords(this.stored);
      this.stored = undefined;
    }
    return this.decoded;
  }

  /** @throws {SqlError} 40001 if a record differs from the one that the change was based on. */
  check(changes: readonly AccessChange[]): void {
    for (const { key, before } of changes) {
      if ((this.records.get(key) ?? null) === before) continue;
      const message = "Cannot change access control: another statement has changed it in the meantime";
      throw new SqlError(message, -1, SQLSTATE.serializationFailure);
    }
  }

  /** Applies a block of the log, unless the records already include it. */
  apply(changes: readonly RecordChange[], lsn: number): void {
    if (lsn <= this.appliedLsn) return;
    for (const [key, text] of changes) {
      this.replaced?.push([key, this.records.get(key)]);
      this.put(key, text ?? undefined);
      this.unpublished.changes.push([key, text]);
    }
    this.appliedLsn = lsn;
    this.isChanged = true;
  }

  private put(key: string, text: string | undefined): void {
    if (text === undefined) this.records.delete(key);
    else this.records.set(key, text);
  }

  /** Applies the effects of a table's definition on grants. */
  follow(event: TableEvent | undefined, lsn: number): void {
    if (event === undefined || lsn <= this.appliedLsn) return;
    this.apply(changesOf(this.records, event), lsn);
  }

  /** Returns what has changed since the last call. */
  takeUnpublished(): AccessPublication {
    const { unpublished } = this;
    this.unpublished = { changes: [] };
    return unpublished;
  }

  /** For a group of commits that may fail: returns a function that undoes changes since this call, until the next one. */
  savepoint(): () => void {
    const { appliedLsn, isChanged } = this;
    const publishedCount = this.unpublished.changes.length;
    const replaced: [string, string | undefined][] = [];
    this.replaced = replaced;
    return () => {
      for (const [key, text] of replaced.reverse()) this.put(key, text);
      replaced.length = 0;
      this.unpublished.changes.length = publishedCount;
      this.appliedLsn = appliedLsn;
      this.isChanged = isChanged;
    };
  }

  /** Writes and syncs. The caller syncs the directory. */
  store(files: Files, root: string): void {
    const { records, lsn } = this;
    const out = new ByteWriter();
    out.u32(FORMAT_VERSION);
    out.size(lsn);
    out.u32(records.size);
    for (const [key, text] of records) {
      out.text(key);
      out.text(text);
    }
    writeSlot(files, slotBase(root), this.generation + 1, out.done());
    this.generation++;
    this.isChanged = false;
  }

  /**
   * `generation`: recorded in the catalogue. @throws {CorruptFileError} A database without its records is not opened,
   * because nobody or everybody would have access.
   */
  load(files: Files, root: string, generation: number): void {
    if (generation === 0 && !files.exists(`${slotBase(root)}.1`)) return;
    const { slots, damage } = readSlots(files, slotBase(root));
    const slot = slots.find((each) => each.generation >= generation);
    if (slot === undefined) {
      if (generation === 0) return; // the first slot was being written
      throw damage[0] ?? new CorruptFileError(slotBase(root), `generation ${generation} is missing`);
    }
    // The next checkpoint overwrites the other slot.
    if (slot.generation > generation) syncSlot(files, slot.path);
    const reader = new ByteReader(slot.payload);
    checkFormat(slot.path, reader.u32());
    this.appliedLsn = reader.size();
    this.generation = slot.generation;
    this.stored = slot.payload;
    this.unpublished = { stored: slot.payload, changes: [] };
  }
}

/** The records of a slot's payload. */
export function decodeRecords(payload: Uint8Array): Map<string, string> {
  const reader = new ByteReader(payload);
  reader.u32(); // `load` has checked the format
  reader.size();
  const records = new Map<string, string>();
  for (let left = reader.u32(); left > 0; left--) records.set(reader.text(), reader.text());
  reader.end();
  return records;
}

function slotBase(root: string): string {
  return join(root, "access");
}
