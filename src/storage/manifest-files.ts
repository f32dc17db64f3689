/**
 * The manifest of a table on disk: a snapshot in one of two slots (`slots.ts`), and in the file `edits.0` or `edits.1` beside it
 * the edits that later checkpoints have appended, so that a checkpoint writes what has changed. An edit is a record like that of
 * a slot, with the next generation. When the edits have become larger than their snapshot, a snapshot goes into the other slot.
 */
import { assert } from "../assert.ts";
import { CorruptFileError } from "../errors.ts";
import { type Files, join, parentOf, readAll, writeFully } from "./files.ts";
import {
  applyEdit,
  type DecodedManifest,
  decodeManifest,
  type DetachedParts,
  encodeEdit,
  encodeManifest,
} from "./manifest.ts";
import type { ManifestHead } from "./manifest-head.ts";
import { nextVersion } from "./page.ts";
import type { PartRecord } from "./page-records.ts";
import { PageList } from "./page-list.ts";
import type { Part } from "./segments.ts";
import { columnById } from "./schema.ts";
import {
  decodeRecord,
  EDIT_MAGIC,
  encodeRecord,
  readSlots,
  type Slot,
  slotPath,
  syncSlot,
  writeSlot,
} from "./slots.ts";
import { difference } from "./splices.ts";
import type { Table } from "./table.ts";

/** Edits up to this size never need a new snapshot, even if their snapshot is small. */
const EDITS_BYTES_MIN = 4096;

const baseOf = (directory: string) => join(directory, "manifest");

function editsPath(directory: string, generation: number): string {
  return join(directory, `edits.${generation % 2}`);
}

/** Makes the table's current state durable. The caller has sealed its pages and synced the files that it names. */
export function writeManifest(files: Files, table: Table): void {
  const { directory, segments, stored } = table;
  for (const dictionary of table.dictionaries.values()) {
    assert(dictionary.stored.count === dictionary.count, "dictionaries are durable before segments that need them");
  }
  const generation = table.generation + 1;
  const head: ManifestHead = {
    lsn: table.lsn,
    schema: table.schema,
    nextColumnId: table.nextColumnId,
    nextUid: table.nextUid,
    nextVersion: nextVersion(),
    files: [...table.data.list.values()].map(({ id, sizeBytes, packing }) => ({ id, sizeBytes, packing })),
    posted: [...table.posted],
    // Without those of columns that were dropped.
    dictionaries: [...table.dictionaries].flatMap(([columnId, { stored }]) =>
      columnById(table.schema, columnId) === undefined ? [] : [{ columnId, ...stored }]
    ),
  };
  const detached: DetachedParts = new Map([...table.detached].map(([start, { parts }]) => [start, recordsOf(parts)]));
  const state = { segments, detached: table.detached };
  if (stored !== undefined && !stored.isOld) {
    const parts = difference(segments.parts, stored.segments.parts).map((splice) => (
      { ...splice, added: recordsOf(splice.added) }
    ));
    const payload = encodeEdit({ head, parts, detached: table.detached === stored.detached ? undefined : detached });
    const record = encodeRecord(EDIT_MAGIC, generation, payload);
    const editsBytes = stored.editsBytes + record[0].length + payload.length;
    if (editsBytes <= Math.max(stored.sizeBytes, EDITS_BYTES_MIN)) {
      appendEdit(files, editsPath(directory, stored.generation), stored.editsBytes, record);
      table.stored = { ...stored, editsBytes, ...state };
      table.generation = generation;
      return;
    }
  }
  // Not into the slot in use, because until the catalogue is written, only that one may be complete.
  const next = stored !== undefined && stored.generation % 2 === generation % 2 ? generation + 1 : generation;
  const payload = encodeManifest({ head, parts: recordsOf(segments.parts), detached });
  writeSlot(files, baseOf(directory), next, payload);
  files.syncDirectory(directory);
  table.stored = { generation: next, sizeBytes: payload.length, editsBytes: 0, ...state };
  table.generation = next;
}

function recordsOf(parts: readonly Part[]): PartRecord[] {
  return parts.map((part) => ({ isList: part instanceof PageList, record: part.stored }));
}

/** `position`: where the last whole edit ends; what lies behind it is left from an interrupted write or an older snapshot. */
function appendEdit(files: Files, path: string, position: number, record: Uint8Array[]): void {
  const file = files.open(path, "create");
  try {
    file.truncate(position);
    writeFully(file, record, position);
    file.sync();
  } finally {
    file.close();
  }
  if (position === 0) files.syncDirectory(parentOf(path));
}

export interface ReadManifest {
  manifest: DecodedManifest;
  /** Of the snapshot, or of its last edit. */
  generation: number;
  /** Slot of the snapshot. */
  slot: Slot;
  editsBytes: number;
}

/**
 * Reads the newest manifest.
 * @throws {CorruptFileError} unless it has at least this generation.
 */
export function readManifest(files: Files, directory: string, generation: number): ReadManifest {
  const { slots, damage } = readSlots(files, baseOf(directory));
  const [slot] = slots;
  if (slot === undefined) throw damage[0] ?? new CorruptFileError(baseOf(directory), "it is missing");
  const found = withEdits(files, directory, slot);
  if (found.generation >= generation) return found;
  const path = editsPath(directory, slot.generation);
  throw damage[0] ??
    new CorruptFileError(path, `generation ${generation} is missing: the edits end with ${found.generation}`);
}

/** Syncs a manifest that was read, because the process that wrote it may have died before its sync. */
export function syncManifest(files: Files, directory: string, { slot, editsBytes }: ReadManifest): void {
  syncSlot(files, slotPath(baseOf(directory), slot.generation));
  if (editsBytes > 0) syncSlot(files, editsPath(directory, slot.generation));
}

function withEdits(files: Files, directory: string, slot: Slot): ReadManifest {
  const path = editsPath(directory, slot.generation);
  let manifest = decodeManifest(slot.path, slot.payload);
  let { generation } = slot, editsBytes = 0;
  const bytes = files.exists(path) ? readAll(files, path) : new Uint8Array(0);
  for (;;) {
    const record = decodeRecord(bytes.subarray(editsBytes), EDIT_MAGIC);
    if (record === undefined || record.generation !== generation + 1) break;
    manifest = applyEdit(path, record.payload, manifest);
    generation = record.generation;
    editsBytes += record.sizeBytes;
  }
  return { manifest, generation, slot, editsBytes };
}
