/**
 * Opens a database: reads the newest valid catalogue, then the log from where the manifests end. Definitions are applied; row
 * blocks are kept until their table is opened (`opening.ts`). Recovery may be interrupted at any point, because it writes nothing
 * that changes the result of a second attempt.
 */
import { CorruptFileError } from "../errors.ts";
import { BLOCK_HEADER_BYTES, BLOCK_KIND, type BlockLocation, logFiles } from "./wal/format.ts";
import { Log } from "./wal/log.ts";
import { BlockReader } from "./wal/payloads.ts";
import { Scan } from "./wal/scan.ts";
import type { RecordChange } from "../access/mod.ts";
import type { Definition } from "./blocks.ts";
import { fromJson } from "./bytes.ts";
import { PACKING } from "./encoding/encodings.ts";
import { join, parentOf } from "./files.ts";
import type { CatalogRecord } from "./manifest.ts";
import { openTable, setDamage } from "./opening.ts";
import { PAGE_FORMAT } from "./page.ts";
import type { Store } from "./store.ts";
import { writeCatalog } from "./checkpoint.ts";

export function recover(store: Store): Log {
  const { options, report } = store;
  const { files } = options;
  const catalog = readCatalog(store);
  if (catalog === undefined) return createDatabase(store);
  store.numbers.pass({ tableId: catalog.nextTableId, fileId: catalog.nextFileId });
  for (const { schema, generation, lsn, packing, pages, damage } of catalog.tables) {
    const table = store.newTable(schema);
    table.generation = generation;
    table.wasPacked = packing === PACKING;
    table.wasConverted = pages === PAGE_FORMAT;
    table.isListed = true;
    store.tables.set(schema.id, table);
    store.publisher.touch(table);
    if (damage !== undefined) table.damage = new CorruptFileError(damage.path, damage.message);
    else table.unread = { base: "manifest", lsn: lsn ?? 0, blocks: [] };
    // Older catalogues do not record the LSN.
    if (lsn === undefined) openTable(store, table);
  }
  reserveFileIds(store);
  store.access.load(files, options.root, catalog.access ?? 0);
  const scan = new Scan(files, store.logDirectory, catalog.logStart);
  distribute(store, scan.blocks);
  report.push(...scan.report);
  const log = Log.open(files, store.logDirectory, scan, options.random);
  removeGarbage(store, catalog);
  return log;
}

/**
 * Reserves the ids of files that are newer than the catalogue. A file id must be unique in the database, because the
 * pool's keys contain it.
 */
function reserveFileIds(store: Store): void {
  const { files, root } = store.options;
  for (const directory of files.list(root)) {
    if (!/^t\d+$/.test(directory)) continue;
    for (const name of files.list(join(root, directory))) {
      const id = /^d(\d+)\.seg$/.exec(name)?.[1];
      if (id !== undefined) store.numbers.pass({ fileId: Number(id) + 1 });
    }
  }
}

function readCatalog(store: Store): CatalogRecord | undefined {
  const { found, damage } = store.catalog.read();
  const logs = logFiles(store.options.files, store.logDirectory);
  if (found === undefined) {
    // Only an interrupted first start leaves a log without blocks and no catalogue.
    const isNew = logs.every(({ path, firstLsn }) => firstLsn === 1 && sizeOf(store, path) <= BLOCK_HEADER_BYTES);
    if (isNew) return undefined;
    throw damage[0] ?? new CorruptFileError(store.catalog.base, "it is missing, although there is a log");
  }
  const { path, record } = found;
  if (damage.length > 0) {
    // The damaged slot may be the newer one. The log determines that: if it still begins at the position in the older
    // slot, nothing is missing.
    if (!logs.some((log) => log.firstLsn === record.logStart)) throw damage[0];
    store.report.push(`${damage[0].message}; ${path} is used instead, and the log is complete from there`);
  }
  store.catalog.sync(found);
  return record;
}

function sizeOf(store: Store, path: string): number {
  const file = store.options.files.open(path, "read");
  try {
    return file.size();
  } finally {
    file.close();
  }
}

function createDatabase(store: Store): Log {
  const { files, root, random } = store.options;
  files.makeDirectory(store.logDirectory);
  const log = Log.create(files, store.logDirectory, 1, random);
  files.syncDirectory(root);
  files.syncDirectory(parentOf(root));
  writeCatalog(store, 1);
  return log;
}

/** Applies definitions in order and hands row blocks to their tables. */
function distribute(store: Store, blocks: readonly BlockLocation[]): void {
  const reader = new BlockReader(store.options.files);
  try {
    blocks.forEach((block, k) => {
      if (block.kind === BLOCK_KIND.definition) define(store, block, () => reader.payload(blocks, k));
      else if (block.kind === BLOCK_KIND.access) {
        store.access.apply(fromJson<RecordChange[]>(reader.payload(blocks, k)), block.lsn);
      } else if (block.kind !== BLOCK_KIND.abort) addBlock(store, block);
    });
  } finally {
    reader.close();
  }
}

function addBlock(store: Store, block: BlockLocation): void {
  const table = store.tables.get(block.tableId);
  // The table was dropped, so a checkpoint omitted it.
  if (table === undefined || table.damage !== undefined) return;
  if (table.unread === undefined && block.lsn <= table.lsn) return;
  const unread = table.unread ??= { base: "memory", lsn: 0, blocks: [] };
  unread.blocks.push(block);
  unread.lsn = Math.max(unread.lsn, block.lsn);
  table.changed = true;
}

function define(store: Store, { tableId, lsn }: BlockLocation, payload: () => Uint8Array): void {
  let table = store.tables.get(tableId);
  let definition: Definition;
  try {
    definition = fromJson<Definition>(payload());
  } catch (error) {
    if (!(error instanceof CorruptFileError) || table === undefined) throw error;
    openTable(store, table);
    if (lsn > table.lsn) setDamage(store, table, error);
    return;
  }
  store.access.follow(definition.access, lsn);
  if (definition.op === "rows") return;
  if (definition.op === "create") {
    if (table !== undefined) return; // the catalogue already has it
    const { schema, generation } = definition;
    table = store.newTable(schema);
    table.lsn = lsn;
    // A table created with rows has a manifest, which was durable before this block.
    table.generation = generation ?? 0;
    table.changed = generation === undefined;
    table.isListed = generation !== undefined;
    table.wasConverted = generation === undefined;
    table.unread = { base: generation === undefined ? "nothing" : "manifest", lsn, blocks: [] };
    store.tables.set(tableId, table);
    store.publisher.touch(table);
    store.numbers.pass({ tableId: tableId + 1 });
  } else if (definition.op === "drop") {
    if (table !== undefined) store.applyDefinition(table, definition, lsn);
  } else if (table !== undefined) {
    // The definition applies on top of the blocks before it.
    openTable(store, table);
    if (table.damage === undefined && lsn > table.lsn) store.applyDefinition(table, definition, lsn);
  }
}

/** Removes the remains of an interrupted checkpoint and of dropped tables. */
function removeGarbage(store: Store, catalog: CatalogRecord): void {
  const { files, root } = store.options;
  for (const { path, firstLsn } of logFiles(files, store.logDirectory)) {
    if (firstLsn < catalog.logStart) files.remove(path);
  }
  const listed = new Set(catalog.tables.map(({ schema }) => `t${schema.id}`));
  for (const table of store.tables.values()) listed.add(`t${table.schema.id}`);
  for (const name of files.list(root)) {
    if (/^t\d+$/.test(name) && !listed.has(name)) files.removeDirectory(join(root, name));
  }
}
