/**
 * A checkpoint: table by table its data, dictionaries and manifest, each synced before the next; then the catalogue, and only
 * then the log is dropped. The log alone carries durability in between.
 */
import type { Chunk } from "./chunks.ts";
import { type Files, join } from "./files.ts";
import { encodeCatalog, encodeManifest } from "./manifest.ts";
import { writeSlot } from "./slots.ts";
import type { Table } from "./table.ts";
import type { Log } from "./wal.ts";
import type { Store } from "./store.ts";

/**
 * In steps, a table each, between which commands may run: a manifest says which block of the log it is as of, so that it does not
 * matter what comes meanwhile. What is changed after a table's step, and tables that are made after the first, are in the log
 * that stays. May be begun anew after it has failed for want of room.
 */
export function* checkpointSteps(store: Store, log: Log): Generator<void, void> {
  const { files, root, compactBytes } = store.options;
  const logStart = log.roll();
  const changed = [...store.tables.values()].filter((table) => table.changed);
  for (const table of changed) {
    if (store.tables.get(table.schema.id) === table) store.open(table);
    if (table.damage !== undefined || store.tables.get(table.schema.id) !== table) continue;
    table.store(true);
    table.compact(compactBytes);
    storeDictionaries(files, table);
    table.data.sync();
    // Without syncs at commit: a manifest must not know more than the log, whose numbers would be given out again.
    log.syncPending();
    writeManifest(files, table);
    store.stored(table);
    yield;
  }
  files.syncDirectory(root);
  writeCatalog(store, logStart);
  log.dropBefore(logStart);
  let dead = 0;
  for (const { data } of store.tables.values()) {
    for (const file of data.list) if (!file.removed) dead += file.sizeBytes - file.liveBytes;
  }
  store.options.heap.setCounter("deadBytes", dead);
  store.options.heap.setCounter("logBytes", log.sizeBytes);
}

export function storeDictionaries(files: Files, table: Table): void {
  for (const [columnId, dictionary] of table.dictionaries) {
    dictionary.store(files, dictionaryPath(table.directory, columnId));
  }
}

export function writeManifest(files: Files, table: Table): void {
  const places = new Map<number, number>();
  const kept = table.data.list.filter((file, place) => {
    const isKept = !file.removed;
    if (isKept) places.set(place, places.size);
    return isKept;
  });
  const segments = table.segments.map((segment) => ({
    ...segment,
    chunks: segment.chunks.map((chunk): Chunk | undefined =>
      chunk && { ...chunk, plain: { ...chunk.plain, file: places.get(chunk.plain.file)! } }
    ),
  }));
  const payload = encodeManifest({
    lsn: table.lsn,
    schema: table.schema,
    nextColumnId: table.nextColumnId,
    files: kept.map(({ id, sizeBytes }) => ({ id, sizeBytes })),
    dictionaries: [...table.dictionaries].map(([columnId, { stored }]) => ({ columnId, ...stored })),
    segments,
  });
  writeSlot(files, join(table.directory, "manifest"), table.generation + 1, payload);
  files.syncDirectory(table.directory);
  table.generation++;
}

export function writeCatalog(store: Store, logStart: number): void {
  // Those without a manifest are younger than `logStart`.
  const listed = [...store.tables.values()].filter(({ generation, damage }) => generation > 0 || damage !== undefined);
  const tables = listed.map(({ schema, generation, newestLsn, damage }) => ({
    schema,
    generation,
    lsn: newestLsn,
    damage: damage && { path: damage.path, message: damage.message.slice(damage.path.length + 2) },
  }));
  const { nextTableId, nextFileId } = store;
  writeSlot(
    store.options.files,
    store.catalogBase,
    store.catalogGeneration + 1,
    encodeCatalog({ logStart, nextTableId, nextFileId, tables }),
  );
  store.options.files.syncDirectory(store.options.root);
  store.catalogGeneration++;
}

export function dictionaryPath(directory: string, columnId: number): string {
  return join(directory, `s${columnId}.dict`);
}
