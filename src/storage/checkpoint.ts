/**
 * Makes a checkpoint. For each table it syncs data, dictionaries and manifest, in this order. Then it writes the
 * catalogue and truncates the log. Until then only the log provides durability.
 */
import { Compaction } from "./compaction.ts";
import { convertPages, isConverted } from "./conversion.ts";
import { PACKING } from "./encoding/encodings.ts";
import { type Files, join } from "./files.ts";
import type { CatalogEntry } from "./manifest.ts";
import { writeManifest } from "./manifest-files.ts";
import { PAGE_FORMAT } from "./page.ts";
import type { Table } from "./table.ts";
import type { Log } from "./wal/log.ts";
import type { Store } from "./store.ts";

/** Default of `heldLogBytes`. */
const HELD_LOG_BYTES = 2 ** 30;
/** Default of `flushStepBytes`. */
const FLUSH_STEP_BYTES = 4 << 20;

/** Other threads encode segments meanwhile: there is nothing to do before one of them comes back. */
type Pause = "for others" | undefined;

/**
 * Works in steps, between which commands may run. That is safe because each manifest records the log block
 * that it covers: changes after a table's step, and tables created after the first step, are in the part of the log
 * that is kept. A checkpoint that failed for lack of space may be restarted.
 */
export function* checkpointSteps(store: Store, log: Log): Generator<Pause, void> {
  const { files, root } = store.options;
  const logStart = log.roll();
  const changed = [...store.tables.values()].filter((table) => table.changed);
  for (const table of changed) {
    const isCurrent = () => store.tables.get(table.schema.id) === table && table.damage === undefined;
    if (isCurrent()) store.open(table);
    for (const pause of isCurrent() ? flushSteps(store, table) : []) {
      yield pause;
      if (!isCurrent()) break;
    }
    for (const _ of isCurrent() ? convertPages(table) : []) {
      publish(store, table);
      yield;
      if (!isCurrent()) break;
    }
    if (!isCurrent()) continue;
    flush(store, table);
    let isFlushed = true;
    const compaction = new Compaction(
      table,
      store.options,
      ({ packing }) => packing < PACKING && store.isRepacking(table),
    );
    while (isCurrent() && compaction.step()) {
      publish(store, table);
      yield;
      isFlushed = false;
    }
    if (!isCurrent()) continue;
    if (!isFlushed) flush(store, table);
    storeState(files, table, log);
    store.stored(table);
    yield;
  }
  if (store.access.changed) {
    log.syncPending();
    store.access.store(files, root);
  }
  files.syncDirectory(root);
  writeCatalog(store, logStart);
  const { heldLogBytes = HELD_LOG_BYTES } = store.options;
  for (const name of log.dropBefore(logStart, heldLogBytes)) {
    const message = `the log is no longer kept for ${name}, which has fallen behind by more than ${heldLogBytes} bytes`;
    store.options.log("ERROR", message);
  }
  let dead = 0;
  for (const { data } of store.tables.values()) {
    for (const file of data.list.values()) dead += file.sizeBytes - file.liveBytes;
  }
  store.options.heap.setCounter("deadBytes", dead);
  store.options.heap.setCounter("logBytes", log.sizeBytes);
  store.options.heap.setCounter("heldLogBytes", log.heldBytes);
}

/**
 * Writes most of the rows that are only in memory to the data files. Rows that come meanwhile do not add steps, so it ends however
 * many come.
 */
function* flushSteps(store: Store, table: Table): Generator<Pause, void> {
  const { memory, background, options: { flushStepBytes = FLUSH_STEP_BYTES } } = store;
  for (let left = memory.tailBytes; left > flushStepBytes;) {
    const bytes = table.disk.flush(false, flushStepBytes, true, background.handOver(table, true, false));
    publish(store, table);
    left -= bytes;
    if (bytes < flushStepBytes && !background.isAwaited(table)) return;
    yield bytes === 0 ? "for others" : undefined;
  }
  while (background.isAwaited(table)) yield "for others";
  // What takes too long elsewhere.
  for (let left = background.sizeBytes; left > 0;) {
    const bytes = table.disk.flush(false, flushStepBytes, true, background.takeBack);
    publish(store, table);
    if (bytes < flushStepBytes) return;
    left -= bytes;
    yield;
  }
}

/** Writes the rows that are only in memory to the data files. */
function flush(store: Store, table: Table): void {
  table.disk.flush(true, Infinity, true, store.background.takeBack);
  publish(store, table);
}

function publish({ publisher }: Store, table: Table): void {
  publisher.touch(table);
  publisher.publish();
}

/** Makes the state of a table durable, whose segments have been flushed. */
export function storeState(files: Files, table: Table, log: Log): void {
  table.disk.seal(true);
  storeDictionaries(files, table);
  table.data.sync();
  // With `nosync`: a manifest must not cover more than the durable log, or a restart would reuse LSNs.
  log.syncPending();
  writeManifest(files, table);
}

function storeDictionaries(files: Files, table: Table): void {
  for (const [columnId, dictionary] of table.dictionaries) {
    if (dictionary.stored.sizeBytes === 0 && dictionary.count > 0) table.data.madeFile = true;
    dictionary.store(files, dictionaryPath(table.directory, columnId));
  }
}

export function writeCatalog(store: Store, logStart: number): void {
  // Tables without a manifest are newer than `logStart`.
  const listed = [...store.tables.values()].filter(({ generation, damage }) => generation > 0 || damage !== undefined);
  const tables = listed.map((table): CatalogEntry => {
    const { schema, generation, newestLsn: lsn, damage, isPacked } = table;
    return {
      schema,
      generation,
      lsn,
      packing: isPacked ? PACKING : undefined,
      pages: isConverted(table) ? PAGE_FORMAT : undefined,
      damage: damage && { path: damage.path, message: damage.message.slice(damage.path.length + 2) },
    };
  });
  const { tableId: nextTableId, fileId: nextFileId } = store.numbers.next;
  store.catalog.write({ logStart, nextTableId, nextFileId, access: store.access.generation, tables });
  for (const table of listed) {
    table.isListed = true;
    table.wasConverted = isConverted(table);
  }
}

export function dictionaryPath(directory: string, columnId: number): string {
  return join(directory, `s${columnId}.dict`);
}
