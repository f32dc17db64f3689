/**
 * The manifest of a table on disk: a snapshot in one of two slots (`slots.ts`), and in the file `edits.0` or `edits.1` beside it
 * the edits that later checkpoints have appended, so that a checkpoint writes what has changed. An edit is a record like that of
 * a slot, with the next generation. When the edits have become larger than their snapshot, a snapshot goes into the other slot.
 */
import { CorruptFileError } from "../errors.ts";
import type { Chunk } from "./chunks.ts";
import { type Files, join, parentOf, readAll, writeFully } from "./files.ts";
import {
  decodeEdit,
  decodeManifest,
  encodeEdit,
  encodeManifest,
  type Manifest,
  type ManifestHead,
} from "./manifest.ts";
import { Segments, type SplicedSegments } from "./segments.ts";
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
import type { Segment, Table } from "./table.ts";

/** Edits up to this size never need a new snapshot, even if their snapshot is small. */
const EDITS_BYTES_MIN = 4096;

const baseOf = (directory: string) => join(directory, "manifest");

function editsPath(directory: string, generation: number): string {
  return join(directory, `edits.${generation % 2}`);
}

/** Makes the table's current state durable. The caller has synced the files that it lists. */
export function writeManifest(files: Files, table: Table): void {
  const { directory, segments, detached, stored } = table;
  const generation = table.generation + 1;
  const newIndexes = new Map<number, number>();
  const kept = table.data.list.filter((file, index) => {
    if (!file.removed) newIndexes.set(index, newIndexes.size);
    return !file.removed;
  });
  const head: ManifestHead = {
    lsn: table.lsn,
    schema: table.schema,
    nextColumnId: table.nextColumnId,
    files: kept.map(({ id, sizeBytes }) => ({ id, sizeBytes })),
    dictionaries: [...table.dictionaries].map(([columnId, { stored }]) => ({ columnId, ...stored })),
  };
  const renumbered = (segment: Segment) => withFiles(segment, (index) => newIndexes.get(index)!);
  const outside = () => [...detached.values()].flat().map(renumbered);
  if (stored !== undefined) {
    const payload = encodeEdit({
      ...head,
      splices: segments.differenceFrom(stored.segments).map(({ start, count, segments }) => (
        { start, count, segments: segments.map(renumbered) }
      )),
      detached: detached === stored.detached ? undefined : outside(),
    });
    const record = encodeRecord(EDIT_MAGIC, generation, payload);
    const editsBytes = stored.editsBytes + record[0].length + payload.length;
    if (editsBytes <= Math.max(stored.sizeBytes, EDITS_BYTES_MIN)) {
      appendEdit(files, editsPath(directory, stored.generation), stored.editsBytes, record);
      table.stored = { ...stored, editsBytes, segments, detached };
      table.generation = generation;
      return;
    }
  }
  // Not into the slot in use, because until the catalogue is written, only that one may be complete.
  const next = stored !== undefined && stored.generation % 2 === generation % 2 ? generation + 1 : generation;
  const payload = encodeManifest({ ...head, segments: segments.slice().map(renumbered), detached: outside() });
  writeSlot(files, baseOf(directory), next, payload);
  files.syncDirectory(directory);
  table.stored = { generation: next, sizeBytes: payload.length, editsBytes: 0, segments, detached };
  table.generation = next;
}

/**
 * `position`: end of the last complete edit. The bytes after it are left from an interrupted write or an older
 * snapshot.
 */
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
  /** Its segments refer to its files by index. */
  manifest: Manifest;
  /** Ids of files that are in the snapshot or an edit, but not in the last one. */
  removed: ReadonlySet<number>;
  /** Generation of the snapshot, or of its last edit. */
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
  const list = [...manifest.files];
  const indexes = new Map(list.map(({ id }, index) => [id, index]));
  let { generation } = slot, editsBytes = 0;
  const bytes = files.exists(path) ? readAll(files, path) : new Uint8Array(0);
  let segments: Segments<Segment> | undefined;
  let removed = new Set<number>();
  for (;;) {
    const record = decodeRecord(bytes.subarray(editsBytes), EDIT_MAGIC);
    if (record === undefined || record.generation !== generation + 1) break;
    const { splices, detached, ...head } = decodeEdit(path, record.payload);
    for (const file of head.files) {
      const known = indexes.get(file.id);
      if (known === undefined) indexes.set(file.id, list.push(file) - 1);
      else list[known] = file;
    }
    const renumbered = (segment: Segment) => withFiles(segment, (index) => indexes.get(head.files[index].id)!);
    removed = new Set(indexes.keys()).difference(new Set(head.files.map(({ id }) => id)));
    segments ??= Segments.of(manifest.segments.map((segment) => ({ ...segment, uid: 0 })));
    segments = segments.apply(splices.map((splice): SplicedSegments<Segment> => (
      { ...splice, segments: splice.segments.map((segment) => renumbered({ ...segment, uid: 0 })) }
    )));
    const outside = detached?.map((segment) => renumbered({ ...segment, uid: 0 })) ?? manifest.detached;
    manifest = { ...head, segments: [], detached: outside };
    generation = record.generation;
    editsBytes += record.sizeBytes;
  }
  if (segments !== undefined) manifest = { ...manifest, files: list, segments: segments.slice() };
  return { manifest, removed, generation, slot, editsBytes };
}

function withFiles(segment: Segment, fileOf: (index: number) => number): Segment {
  const chunks = segment.chunks.map((chunk): Chunk | undefined =>
    chunk && { ...chunk, plain: { ...chunk.plain, file: fileOf(chunk.plain.file) } }
  );
  return { ...segment, chunks };
}
