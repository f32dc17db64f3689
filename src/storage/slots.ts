/**
 * A small record that is replaced as a whole: two files, `NAME.0` and `NAME.1`, written in turn, so that a power cut
 * during a write leaves the other one intact. Each contains
 *
 *     magic u32 "SLOT"   crc u32 of all following bytes   generation f64   payload size u32   payload
 */
import { CorruptFileError } from "../errors.ts";
import { crc32 } from "./bytes.ts";
import { type Files, parentOf, readAll, writeFully } from "./files.ts";

const MAGIC = 0x544f4c53;
/** Magic of edits of a manifest, whose records have the same form. "EDIT" */
export const EDIT_MAGIC = 0x54494445;
const HEADER_BYTES = 20;

export interface Slot {
  path: string;
  generation: number;
  payload: Uint8Array;
}

export function slotPath(base: string, generation: number): string {
  return `${base}.${generation % 2}`;
}

/** Writes and syncs a slot. If the file may be new, the caller syncs the directory. */
export function writeSlot(files: Files, base: string, generation: number, payload: Uint8Array): void {
  const file = files.open(slotPath(base, generation), "create");
  try {
    writeFully(file, encodeRecord(MAGIC, generation, payload), 0);
    file.truncate(HEADER_BYTES + payload.length);
    file.sync();
  } finally {
    file.close();
  }
}

/** Header and payload. */
export function encodeRecord(magic: number, generation: number, payload: Uint8Array): Uint8Array[] {
  const header = new Uint8Array(HEADER_BYTES);
  const view = new DataView(header.buffer);
  view.setUint32(0, magic, true);
  view.setFloat64(8, generation, true);
  view.setUint32(16, payload.length, true);
  view.setUint32(4, crc32(payload, crc32(header.subarray(8))), true);
  return [header, payload];
}

/** The record at the start of `bytes`. Undefined if there is no valid one. */
export function decodeRecord(
  bytes: Uint8Array,
  magic: number,
): { generation: number; payload: Uint8Array; sizeBytes: number } | undefined {
  const slot = decode("", bytes, magic);
  if (slot instanceof CorruptFileError) return undefined;
  const { generation, payload } = slot;
  return { generation, payload, sizeBytes: HEADER_BYTES + payload.length };
}

/** Syncs a slot that was read, because the process that wrote it may have died before its sync. */
export function syncSlot(files: Files, path: string): void {
  const file = files.open(path, "write");
  try {
    file.sync();
  } finally {
    file.close();
  }
  files.syncDirectory(parentOf(path));
}

/** Returns the valid slots, newest first, and the damage of the other existing ones. */
export function readSlots(files: Files, base: string): { slots: Slot[]; damage: CorruptFileError[] } {
  const slots: Slot[] = [];
  const damage: CorruptFileError[] = [];
  for (const parity of [0, 1]) {
    const path = `${base}.${parity}`;
    if (!files.exists(path)) continue;
    const bytes = readAll(files, path);
    const slot = decode(path, bytes);
    if (slot instanceof CorruptFileError) damage.push(slot);
    else slots.push(slot);
  }
  slots.sort((a, b) => b.generation - a.generation);
  return { slots, damage };
}

function decode(path: string, bytes: Uint8Array, magic = MAGIC): Slot | CorruptFileError {
  if (bytes.length < HEADER_BYTES) {
    return new CorruptFileError(path, `it has ${bytes.length} bytes, fewer than a header`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const size = view.getUint32(16, true);
  if (view.getUint32(0, true) !== magic) {
    return new CorruptFileError(path, "it does not begin with the magic number of a slot");
  }
  if (bytes.length < HEADER_BYTES + size) return new CorruptFileError(path, "it ends before the end of its payload");
  const payload = bytes.subarray(HEADER_BYTES, HEADER_BYTES + size);
  if (view.getUint32(4, true) !== crc32(payload, crc32(bytes.subarray(8, HEADER_BYTES)))) {
    return new CorruptFileError(path, "the checksum does not match");
  }
  return { path, generation: view.getFloat64(8, true), payload };
}
