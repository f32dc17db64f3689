/**
 * Opens a table: reads what its manifest lists, and applies the blocks of the log that come after it. This happens on the first
 * access, so that the duration of a start does not depend on the number of tables.
 */
import { CorruptFileError } from "../errors.ts";
import { decodeBatch, decodeOrdinals, decodePlaces } from "./blocks.ts";
import { dictionaryPath } from "./checkpoint.ts";
import type { AppendBatch } from "./contract.ts";
import { type DataFile, dataFilePath } from "./datafile.ts";
import { join, readFully } from "./files.ts";
import { checkFormat, DATA_MAGIC, HEADER_BYTES, headerVersion } from "./format.ts";
import type { DecodedManifest } from "./manifest.ts";
import type { OldSegment } from "./manifest-old.ts";
import { readManifest, syncManifest } from "./manifest-files.ts";
import { Page } from "./page.ts";
import { PageList } from "./page-list.ts";
import type { PartRecord } from "./page-records.ts";
import { Segments } from "./segments.ts";
import type { StoredManifest, Table } from "./table.ts";
import { BLOCK_KIND } from "./wal/format.ts";
import { BlockReader } from "./wal/payloads.ts";
import type { Store } from "./store.ts";

/** Maximum number of rows to apply together. Late rows cost less in large groups. */
const GROUP_ROWS_MAX = 1_000_000;

/**
 * Reads a table from disk. If it is damaged, the damage is recorded and the table counts as open. After other errors it
 * stays closed and can be opened again; blocks that were applied by then stay applied. Changes nothing on disk that a
 * start after a crash would not repeat.
 */
export function openTable(store: Store, table: Table): void {
  const { unread } = table;
  if (unread === undefined) return;
  try {
    if (unread.base === "manifest") loadManifest(store, table);
    if (unread.base === "nothing") store.makeDirectory(table);
    unread.base = "memory";
    applyBlocks(store, table);
  } catch (error) {
    if (!(error instanceof CorruptFileError)) throw error;
    setDamage(store, table, error);
  }
  table.unread = undefined;
}

/** Records damage of one table. The others stay usable. */
export function setDamage(store: Store, table: Table, error: CorruptFileError): void {
  table.setDamage(error);
  store.publisher.touch(table);
  store.options.onDamage(`table ${table.schema.name} is unusable: ${error.message}`);
}

function loadManifest(store: Store, table: Table): void {
  const { files } = store.options;
  const read = readManifest(files, table.directory, table.generation);
  const { manifest, slot, editsBytes } = read;
  // The next snapshot overwrites the other slot, which may be the only one that would survive a power cut now.
  if (read.generation > table.generation && !store.seal.isSet) {
    store.seal.sync("a manifest", () => syncManifest(files, table.directory, read));
  }
  const { head } = manifest;
  const list = head.files.map(({ id, sizeBytes, packing = 0 }): DataFile => (
    { id, path: dataFilePath(table.directory, id), sizeBytes, liveBytes: 0, packing }
  ));
  checkFiles(store, list, manifest);
  try {
    for (const { columnId, ...stored } of head.dictionaries) {
      table.dictionary(columnId).load(files, dictionaryPath(table.directory, columnId), stored);
    }
  } catch (error) {
    for (const dictionary of table.dictionaries.values()) dictionary.retire(store.publisher.version);
    table.dictionaries.clear();
    throw error;
  }
  for (const { id } of list) store.numbers.pass({ fileId: id + 1 });
  table.data.adopt(list);
  const { generation, payload } = slot;
  const stored = { generation, sizeBytes: payload.length, editsBytes, ...contentsOf(table, manifest) };
  table.load(head, stored, read.generation);
  removeOrphans(store, table);
}

/** The segments that a manifest lists. Those of older formats get their uids here. */
function contentsOf(table: Table, manifest: DecodedManifest): Pick<StoredManifest, "segments" | "detached" | "isOld"> {
  if ("parts" in manifest) {
    const sequence = (parts: readonly PartRecord[]) =>
      Segments.ofParts(
        parts.map(({ isList, record }) => (isList ? PageList : Page).stored(record, table.data.readPage)),
      );
    return {
      segments: sequence(manifest.parts),
      detached: new Map([...manifest.detached].map(([start, parts]) => [start, sequence(parts)])),
    };
  }
  const sequence = (segments: readonly OldSegment[]) =>
    Segments.of(segments.map((segment) => ({ ...segment, uid: table.newUid() })));
  const segments = sequence(manifest.segments);
  const byStart = Map.groupBy(manifest.detached, ({ partition }) => partition);
  const detached = new Map([...byStart].map(([start, segments]) => [start, sequence(segments)]));
  return { segments, detached, isOld: true };
}

/** Checks that files exist and are long enough. The extents are checked when they are read. */
function checkFiles(store: Store, files: readonly DataFile[], manifest: DecodedManifest): void {
  const ends = endsOf(manifest);
  for (const { id, path } of files) {
    const end = ends.get(id) ?? 0;
    if (end === 0) continue;
    if (!store.options.files.exists(path)) throw new CorruptFileError(path, "the file is missing");
    const size = checkedSize(store, path);
    if (size < end) throw new CorruptFileError(path, `it has ${size} bytes, but ${end} were written`);
  }
}

/** By file, the end of the last extent that the manifest needs. Since format 5 a manifest needs its files up to their ends. */
function endsOf(manifest: DecodedManifest): Map<number, number> {
  const ends = new Map<number, number>();
  if ("parts" in manifest) {
    const sizes = new Map(manifest.head.files.map(({ id, sizeBytes }) => [id, sizeBytes]));
    for (const parts of [manifest.parts, ...manifest.detached.values()]) {
      for (const { record: { file, fileBytes } } of parts) {
        ends.set(file, sizes.get(file)!);
        for (const [id] of fileBytes) ends.set(id, sizes.get(id)!);
      }
    }
    return ends;
  }
  for (const { chunks } of [...manifest.segments, ...manifest.detached]) {
    for (const chunk of chunks) {
      if (chunk === undefined) continue;
      const { file, offset, sizeBytes } = chunk.plain;
      ends.set(file, Math.max(ends.get(file) ?? 0, offset + sizeBytes));
    }
  }
  return ends;
}

/** Checks a data file's version and returns its size. A damaged header does not affect the extents. */
function checkedSize(store: Store, path: string): number {
  const file = store.options.files.open(path, "read");
  try {
    const header = new Uint8Array(HEADER_BYTES);
    readFully(file, header, 0);
    checkFormat(path, headerVersion(header, DATA_MAGIC) ?? 0);
    return file.size();
  } finally {
    file.close();
  }
}

/**
 * Removes data files of an interrupted checkpoint, which no manifest lists, and such dictionaries. A dictionary may be made anew under the same
 * name, so it is removed at once: only the writer reads these files.
 */
function removeOrphans(store: Store, table: Table): void {
  const { files } = store.options;
  const known = new Set([...table.data.list.values()].map((file) => file.path));
  for (const name of files.list(table.directory)) {
    const path = join(table.directory, name);
    if (/^d\d+\.seg$/.test(name) && !known.has(path)) store.publisher.removeLater(() => files.remove(path));
    const columnId = /^s(\d+)\.dict$/.exec(name)?.[1];
    const isStored = columnId !== undefined && (table.dictionaries.get(Number(columnId))?.stored.sizeBytes ?? 0) > 0;
    // A copy may be about to read it.
    const mayRemove = !store.seal.isSet && store.publisher.holds === 0;
    if (columnId !== undefined && !isStored && mayRemove) files.remove(path);
  }
}

/** Applies blocks in groups. A group is removed from the list once it is applied. */
function applyBlocks(store: Store, table: Table): void {
  const { blocks } = table.unread!;
  const reader = new BlockReader(store.options.files);
  const { replayed } = store;
  const before = performance.now();
  try {
    while (blocks.length > 0) {
      const { count, rows } = applyGroup(store, table, reader);
      table.lsn = Math.max(table.lsn, blocks[count - 1].lsn);
      blocks.splice(0, count);
      store.flusher.whileOpening(table);
      replayed.blocks += count;
      replayed.rows += rows;
    }
  } finally {
    reader.close();
    replayed.ms += performance.now() - before;
  }
}

/** Applies neighbouring appends together, or one block of another kind. */
function applyGroup(store: Store, table: Table, reader: BlockReader): { count: number; rows: number } {
  const { blocks } = table.unread!;
  const before = table.state;
  table.former = before;
  try {
    table.changed = true;
    if (blocks[0].kind === BLOCK_KIND.append) {
      const batches: AppendBatch[] = [];
      let rows = 0;
      while (batches.length < blocks.length && rows < GROUP_ROWS_MAX) {
        const k = batches.length;
        if (blocks[k].kind !== BLOCK_KIND.append || blocks[k].format !== blocks[0].format) break;
        const { batch } = decodeBatch(reader.payload(blocks, k));
        batches.push(batch);
        rows += batch.rowCount;
      }
      store.applyRows(table, batches);
      // Older versions applied the time to live with the rows, by the newest row alone.
      if (blocks[0].format < 3) table.movePartitions(table.expired(2n ** 62n));
      return { count: batches.length, rows };
    }
    const payload = reader.payload(blocks, 0);
    const ordinals = (bytes: Uint8Array) =>
      blocks[0].format < 5 ? decodeOrdinals(bytes) : decodePlaces(bytes, table.segments);
    if (blocks[0].kind === BLOCK_KIND.delete) table.delete(ordinals(payload));
    else {
      const { batch, rest } = decodeBatch(payload);
      table.update(ordinals(rest), batch.columns);
    }
    store.publisher.touch(table);
    return { count: 1, rows: 0 };
  } catch (error) {
    table.restore(before);
    throw error;
  } finally {
    table.former = undefined;
  }
}
