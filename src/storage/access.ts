/**
 * The records of access control. Log blocks and definitions of tables change them, and a checkpoint writes all of them into one of
 * two slots. Only the access room interprets them.
 *
 *     payload   format version u32, LSN of the last block that concerned them (size), count u32, then key and text of each
 */
import { changesOf, type RecordChange, type TableEvent, withChanges } from "../access/mod.ts";
import { CorruptFileError, SqlError, SQLSTATE } from "../errors.ts";
import { ByteReader, ByteWriter } from "./bytes.ts";
import type { AccessChange } from "./contract.ts";
import { type Files, join } from "./files.ts";
import { checkFormat, FORMAT_VERSION } from "./format.ts";
import { readSlots, syncSlot, writeSlot } from "./slots.ts";

interface State {
  records: ReadonlyMap<string, string>;
  lsn: number;
  changed: boolean;
  unpublished: readonly RecordChange[];
}

export class AccessRecords {
  /** Generation of the newest durable slot; 0: none was written yet. */
  generation = 0;
  private state: State = { records: new Map(), lsn: 0, changed: false, unpublished: [] };

  get lsn(): number {
    return this.state.lsn;
  }

  /** True if changed since the last checkpoint. */
  get changed(): boolean {
    return this.state.changed;
  }

  get hasUnpublished(): boolean {
    return this.state.unpublished.length > 0;
  }

  /** @throws {SqlError} 40001 if a record differs from the one that the change was based on. */
  check(changes: readonly AccessChange[]): void {
    for (const { key, before } of changes) {
      if ((this.state.records.get(key) ?? null) === before) continue;
      const message = "Cannot change access control: another statement has changed it meanwhile";
      throw new SqlError(message, -1, SQLSTATE.serializationFailure);
    }
  }

  /** Applies a block of the log, unless the records already include it. */
  apply(changes: readonly RecordChange[], lsn: number): void {
    if (lsn <= this.state.lsn) return;
    const { records, unpublished } = this.state;
    this.state = {
      records: changes.length === 0 ? records : withChanges(records, changes),
      lsn,
      changed: true,
      unpublished: [...unpublished, ...changes],
    };
  }

  /** Applies the effects of a table's definition on grants. */
  follow(event: TableEvent | undefined, lsn: number): void {
    if (event === undefined || lsn <= this.state.lsn) return;
    this.apply(changesOf(this.state.records, event), lsn);
  }

  /** Returns the changes since the last call, for the readers. */
  takeUnpublished(): readonly RecordChange[] {
    const { unpublished } = this.state;
    this.state = { ...this.state, unpublished: [] };
    return unpublished;
  }

  /** For a group of commits that may fail: returns a function that undoes changes since this call. */
  savepoint(): () => void {
    const { state } = this;
    return () => void (this.state = state);
  }

  /** Writes and syncs. The caller syncs the directory. */
  store(files: Files, root: string): void {
    const { records, lsn } = this.state;
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
    this.state = { ...this.state, changed: false };
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
    const lsn = reader.size();
    const records = new Map<string, string>();
    for (let left = reader.u32(); left > 0; left--) records.set(reader.text(), reader.text());
    reader.end();
    this.generation = slot.generation;
    this.state = { records, lsn, changed: false, unpublished: [...records] };
  }
}

function slotBase(root: string): string {
  return join(root, "access");
}
