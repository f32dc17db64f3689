/**
 * Opening a database: the newest valid catalogue and manifests, then the log from where they end. Writes nothing that would
 * make a second try come out differently, so it may be interrupted at any point.
 */
import { CorruptFileError } from "../errors.ts";
import { type Block, BLOCK_HEADER_BYTES, BLOCK_KIND, FLAG_LAST, Log, logFiles, Scan } from "./wal.ts";
import { decodeBatch, decodePlaces, type Definition } from "./blocks.ts";
import { fromJson } from "./bytes.ts";
import type { AppendBatch, TableSchema } from "./contract.ts";
import { dataFilePath } from "./datafile.ts";
import { join, parentOf, readFully } from "./files.ts";
import { checkFormat, DATA_MAGIC, HEADER_BYTES, headerVersion } from "./format.ts";
import { type CatalogRecord, decodeCatalog, decodeManifest, type Manifest } from "./manifest.ts";
import { readSlots, syncSlot } from "./slots.ts";
import type { Table } from "./table.ts";
import type { TableStore } from "./writer.ts";
import { dictionaryPath, writeCatalog } from "./checkpoint.ts";

/** Rows are applied when so many have come together: late rows cost less in large groups. */
const PENDING_ROWS_MAX = 1_000_000;

export function recover(store: TableStore): Log {
  const { options, report } = store;
  const { files } = options;
  const catalog = readCatalog(store);
  if (catalog === undefined) return createDatabase(store);
  store.nextTableId = catalog.nextTableId;
  store.nextFileId = catalog.nextFileId;
  for (const { schema, generation, damage } of catalog.tables) {
    const table = store.newTable(schema, join(options.root, `t${schema.id}`));
    table.generation = generation;
    store.tables.set(schema.id, table);
    store.touch(table);
    if (damage !== undefined) table.damage = new CorruptFileError(damage.path, damage.message);
    else guard(store, table, () => loadTable(store, table, generation));
  }
  reserveFileIds(store);
  const scan = new Scan(files, store.logDirectory, catalog.logStart);
  const before = performance.now();
  const counts = new Replay(store).run(scan);
  if (counts.blocks > 0) {
    report.push(
      `replayed ${counts.blocks} blocks with ${counts.rows} rows from the log in ${
        Math.round(performance.now() - before)
      } ms`,
    );
  }
  report.push(...scan.report);
  const log = Log.open(files, store.logDirectory, scan, options.random);
  removeGarbage(store, catalog);
  return log;
}

/**
 * Tables that were loaded since the catalogue was written have files whose numbers it does not know. The log names these tables
 * only after others may have got files in the replay, and a number is one file's in the whole database: the pool goes by it.
 */
function reserveFileIds(store: TableStore): void {
  const { files, root } = store.options;
  for (const directory of files.list(root)) {
    if (!/^t\d+$/.test(directory) || store.tables.has(Number(directory.slice(1)))) continue;
    for (const name of files.list(join(root, directory))) {
      const id = /^d(\d+)\.seg$/.exec(name)?.[1];
      if (id !== undefined) store.nextFileId = Math.max(store.nextFileId, Number(id) + 1);
    }
  }
}

function readCatalog(store: TableStore): CatalogRecord | undefined {
  const { files } = store.options;
  const { slots, damage } = readSlots(files, store.catalogBase);
  const logs = logFiles(files, store.logDirectory);
  if (slots.length === 0) {
    // Only a start that was interrupted leaves a log without blocks and no catalogue.
    const isNew = logs.every(({ path, firstLsn }) => firstLsn === 1 && sizeOf(store, path) <= BLOCK_HEADER_BYTES);
    if (isNew) return undefined;
    throw damage[0] ?? new CorruptFileError(store.catalogBase, "it is missing, but there is a log");
  }
  const [newest] = slots;
  store.catalogGeneration = newest.generation;
  const catalog = decodeCatalog(newest.path, newest.payload);
  if (damage.length > 0) {
    // The damaged one may be the newer. Then the log tells: it still begins where the older one says, or it is lost.
    if (!logs.some((log) => log.firstLsn === catalog.logStart)) throw damage[0];
    store.report.push(`${damage[0].message}; ${newest.path} was used, and the log is complete from there`);
  }
  syncSlot(files, newest.path);
  return catalog;
}

function sizeOf(store: TableStore, path: string): number {
  const file = store.options.files.open(path, "read");
  try {
    return file.size();
  } finally {
    file.close();
  }
}

function createDatabase(store: TableStore): Log {
  const { files, root, random } = store.options;
  files.makeDirectory(store.logDirectory);
  const log = Log.create(files, store.logDirectory, 1, random);
  files.syncDirectory(root);
  files.syncDirectory(parentOf(root));
  writeCatalog(store, 1);
  return log;
}

/** Damage in one table leaves the others usable. */
function guard(store: TableStore, table: Table, action: () => void): void {
  try {
    action();
  } catch (error) {
    if (!(error instanceof CorruptFileError)) throw error;
    setDamage(store, table, error);
  }
}

function setDamage(store: TableStore, table: Table, error: CorruptFileError): void {
  table.damage ??= error;
  table.segments = [];
  table.changed = true;
  store.touch(table);
  store.options.log("CRITICAL", `table ${table.schema.name} cannot be used: ${error.message}`);
  store.report.push(`table ${table.schema.name} cannot be used: ${error.message}`);
}

/** A table that was made with its rows: its manifest was durable before its block. */
function loadedTable(store: TableStore, schema: TableSchema, generation: number): Table {
  const table = store.newTable(schema, join(store.options.root, `t${schema.id}`));
  table.generation = generation;
  store.tables.set(schema.id, table);
  store.touch(table);
  guard(store, table, () => loadTable(store, table, generation));
  return table;
}

function loadTable(store: TableStore, table: Table, generation: number): void {
  const { files } = store.options;
  const base = join(table.directory, "manifest");
  const { slots, damage } = readSlots(files, base);
  const slot = slots.find((s) => s.generation >= generation);
  if (slot === undefined) throw damage[0] ?? new CorruptFileError(base, `generation ${generation} is missing`);
  const manifest = decodeManifest(slot.path, slot.payload);
  // The next checkpoint overwrites the other slot, which may be the only one that would survive a power cut now.
  if (slot.generation > generation) syncSlot(files, slot.path);
  table.generation = slot.generation;
  table.schema = manifest.schema;
  table.nextColumnId = manifest.nextColumnId;
  table.lsn = manifest.lsn;
  for (const { id, sizeBytes } of manifest.files) {
    table.data.list.push({ id, path: dataFilePath(table.directory, id), sizeBytes, liveBytes: 0, removed: false });
    store.nextFileId = Math.max(store.nextFileId, id + 1);
  }
  checkFiles(store, table, manifest);
  for (const { columnId, ...stored } of manifest.dictionaries) {
    table.dictionary(columnId).load(files, dictionaryPath(table.directory, columnId), stored);
  }
  table.segments = manifest.segments.map((segment) => ({ ...segment, uid: table.newUid() }));
}

/** Extents are checked when they are read; a file that is missing or too short can be told at once. */
function checkFiles(store: TableStore, table: Table, { segments }: Manifest): void {
  const ends = table.data.list.map(() => 0);
  for (const { chunks } of segments) {
    for (const chunk of chunks) {
      if (chunk !== undefined) {
        ends[chunk.plain.file] = Math.max(ends[chunk.plain.file], chunk.plain.offset + chunk.plain.sizeBytes);
      }
    }
  }
  table.data.list.forEach(({ path }, place) => {
    if (ends[place] === 0) return;
    if (!store.options.files.exists(path)) throw new CorruptFileError(path, "the file is missing");
    const size = checkedSize(store, path);
    if (size < ends[place]) throw new CorruptFileError(path, `it has ${size} bytes, but ${ends[place]} were written`);
  });
}

/** The size of a data file whose version is known. A damaged header harms no extent. */
function checkedSize(store: TableStore, path: string): number {
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

class Replay {
  private pending = new Map<Table, AppendBatch[]>();
  private pendingRows = 0;
  private readonly counts = { blocks: 0, rows: 0 };

  constructor(private readonly store: TableStore) {}

  run(scan: Scan): { blocks: number; rows: number } {
    let unit: Block[] = [];
    for (const block of scan.blocks()) {
      unit.push(block);
      // Tables of a commit are independent of one another, so damage to one block concerns its table alone.
      if ((block.flags & FLAG_LAST) === 0) continue;
      for (const part of unit) this.apply(part);
      unit = [];
    }
    this.flush();
    return this.counts;
  }

  private apply(block: Block): void {
    const { store } = this;
    const { lsn, kind, tableId, payload } = block;
    if (kind === BLOCK_KIND.abort) return;
    let table = store.tables.get(tableId);
    if (payload === undefined) {
      if (table === undefined || lsn > table.lsn) {
        if (table === undefined) throw block.damage!;
        setDamage(store, table, block.damage!);
      }
      return;
    }
    if (kind === BLOCK_KIND.definition) {
      this.flush();
      const definition = fromJson<Definition>(payload);
      if (definition.op === "create") {
        if (table !== undefined) return; // the catalogue has it
        const { schema, generation } = definition;
        table = generation === undefined ? store.applyCreate(schema) : loadedTable(store, schema, generation);
        table.lsn = Math.max(table.lsn, lsn);
        store.nextTableId = Math.max(store.nextTableId, tableId + 1);
      } else if (table !== undefined && (lsn > table.lsn || table.damage !== undefined)) {
        if (table.damage === undefined || definition.op === "drop") store.applyDefinition(table, definition, lsn);
      }
      this.counts.blocks++;
      return;
    }
    if (table === undefined || lsn <= table.lsn || table.damage !== undefined) return;
    this.counts.blocks++;
    this.applyRows(table, block, payload);
    table.lsn = lsn;
  }

  private applyRows(table: Table, { kind }: Block, payload: Uint8Array): void {
    if (kind === BLOCK_KIND.append) {
      const { batch } = decodeBatch(payload);
      const batches = this.pending.get(table);
      if (batches === undefined) this.pending.set(table, [batch]);
      else batches.push(batch);
      this.counts.rows += batch.rowCount;
      this.pendingRows += batch.rowCount;
      if (this.pendingRows >= PENDING_ROWS_MAX) this.flush();
      return;
    }
    this.flush();
    guard(this.store, table, () => {
      if (kind === BLOCK_KIND.delete) table.delete(decodePlaces(payload));
      else {
        const { batch, rest } = decodeBatch(payload);
        table.update(decodePlaces(rest), batch.columns);
      }
      this.store.touch(table);
    });
    this.store.relieve();
  }

  private flush(): void {
    for (const [table, batches] of this.pending) {
      if (table.damage === undefined) guard(this.store, table, () => this.store.applyRows(table, batches));
      this.store.relieve();
    }
    this.pending.clear();
    this.pendingRows = 0;
  }
}

/** What an interrupted checkpoint or a drop has left. */
function removeGarbage(store: TableStore, catalog: CatalogRecord): void {
  const { files, root } = store.options;
  for (const { path, firstLsn } of logFiles(files, store.logDirectory)) {
    if (firstLsn < catalog.logStart) files.remove(path);
  }
  const listed = new Set(catalog.tables.map(({ schema }) => `t${schema.id}`));
  for (const table of store.tables.values()) listed.add(`t${table.schema.id}`);
  for (const name of files.list(root)) {
    if (/^t\d+$/.test(name) && !listed.has(name)) files.removeDirectory(join(root, name));
  }
  for (const table of store.tables.values()) {
    if (table.damage !== undefined) continue;
    const known = new Set(table.data.list.map((file) => file.path));
    for (const name of files.list(table.directory)) {
      const path = join(table.directory, name);
      if (/^d\d+\.seg$/.test(name) && !known.has(path)) files.remove(path);
    }
  }
}
