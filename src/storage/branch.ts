/**
 * The changes of one open transaction. Each table that it changes is forked: the fork shares the immutable segments, and only
 * the transaction's session sees its changes. The changes are also kept as a list, for the log and for savepoints.
 *
 *     change    →  applied to the forks  →  published to the session
 *     rollback  →  the forks are discarded
 *     commit    →  repeated on new forks of tables that others have changed  →  one group of the log  →  the tables become the forks
 */
import { assert } from "../assert.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import { encodeBatch, encodePlaces, openedBatch } from "./blocks.ts";
import { toJson } from "./bytes.ts";
import { tableLost } from "./catalogue.ts";
import type { AppendBatch, Change, OrderedChange, TableSchema } from "./contract.ts";
import { creation, definitionOf, newSchema, removal } from "./definitions.ts";
import type { Entry, What } from "./entries.ts";
import { HeapFullError } from "./heap.ts";
import type { MemoryBlock } from "./memory.ts";
import { type BranchPublication, changeOf } from "./publication.ts";
import { countLists, publishedOf } from "./publisher.ts";
import { applyEntries, conflict, rebase } from "./rebase.ts";
import { inTableOrder } from "./row-ids.ts";
import { checkBatch, checkUpdate } from "./rows.ts";
import type { PageList } from "./page-list.ts";
import type { Page } from "./page.ts";
import { type Segment, Segments } from "./segments.ts";
import type { Table } from "./table.ts";
import { BLOCK_KIND, FLAG_LAST } from "./wal/format.ts";
import type { Store } from "./store.ts";

/** A table as the transaction sees it. */
interface Fork {
  table: Table;
  /** The table that was forked; undefined if the transaction has created the table. */
  base?: Table;
  /** The state of `base` when it was forked. */
  start: { segments: Segments; schema: TableSchema; nextColumnId: number };
  /** The segment list whose memory this branch has reference-counted; see `count`. */
  counted: Segments;
  isDropped: boolean;
  /** The session has been told that the table is dropped. */
  toldDropped: boolean;
}

export class Branch {
  private readonly forks = new Map<number, Fork>();
  private entries: Entry[] = [];
  /** Blocks of memory that only the forks of this branch use. */
  private readonly ownBlocks = new Set<MemoryBlock>();
  private ownBytes = 0;
  /** Bytes of the kept changes. */
  private entryBytes = 0;
  /** Number of tables it has created, with those taken back since. */
  private createdCount = 0;
  /** Number of the current group: rows of one group are appended together. */
  private group = 0;
  /** Unstored memory (`WriterMemory.tailBytes`) when the current change began; undefined: no limit applies. */
  private tailBytesBefore: number | undefined;
  /** Set once the transaction can only be rolled back: the reason. */
  private broken: unknown;

  constructor(private readonly store: Store, readonly id: number, private readonly limitBytes: number) {}

  /** Applies all changes or none. Returns the new table's id if the last change creates a table. */
  change(changes: readonly OrderedChange[]): number | undefined {
    const newTableId = this.apply(changes);
    this.publish();
    return newTableId;
  }

  /** Forks the table and publishes the fork to the session. */
  see(tableId: number): void {
    this.guarded(() => this.fork(tableId));
    this.publish();
  }

  rollbackTo(ordinal: number): void {
    const kept = this.entries.filter((entry) => entry.ordinal <= ordinal);
    if (kept.length === this.entries.length) return;
    for (const fork of this.forks.values()) {
      reset(fork);
      const isMade = fork.base !== undefined || kept.some(({ tableId }) => tableId === fork.table.schema.id);
      fork.isDropped = !isMade;
      this.count(fork);
    }
    this.entries = [];
    this.entryBytes = 0;
    try {
      this.guarded(() => {
        for (const entry of kept) this.keep(entry);
        this.repeat(kept, (tableId) => this.settle(this.forks.get(tableId)!));
      }, false);
    } catch (error) {
      this.broken = error;
      throw error;
    }
    this.publish();
  }

  /** Commits. The transaction is over afterwards, whether or not the commit succeeds. */
  commit(changes: readonly OrderedChange[]): void {
    try {
      this.apply(changes, false);
      this.entries = withoutReplaced(this.entries, (id) => this.forks.get(id)!.base !== undefined);
      this.guarded(() => {
        for (const fork of this.forks.values()) this.bringUpToDate(fork);
      }, false);
      for (const { table, isDropped } of this.forks.values()) if (!isDropped) this.checkNameIsFree(table.schema);
      if (this.entries.length > 0) this.write();
    } finally {
      this.end();
    }
  }

  /** Releases everything that the transaction holds. */
  end(): void {
    const { publisher } = this.store;
    for (const fork of this.forks.values()) this.giveUp(fork);
    this.forks.clear();
    // Also without forks: readers keep a state of the transaction since its beginning.
    publisher.publish({ publication: () => ({ transactionId: this.id, ended: true, tables: [] }) });
  }

  // ---- changes

  private apply(changes: readonly OrderedChange[], isLimited = true): number | undefined {
    if (this.broken !== undefined) throw this.broken;
    this.store.seal.check();
    return this.guarded(() => {
      let newTableId: number | undefined;
      for (let k = 0; k < changes.length;) {
        const waiting: Entry[] = [];
        this.group++;
        for (let change = changes[k]; change?.kind === "append"; change = changes[++k]) {
          for (const { tableId, batches } of change.changes) {
            for (const batch of batches) waiting.push(this.append(change.ordinal, tableId, openedBatch(batch)));
          }
        }
        this.repeat(waiting);
        if (k < changes.length) newTableId = this.applyOne(changes[k++]);
      }
      return newTableId;
    }, isLimited);
  }

  private append(ordinal: number, tableId: number, batch: AppendBatch): Entry {
    const { schema } = this.fork(tableId).table;
    checkBatch(schema, batch);
    return this.keep({ ordinal, tableId, schema, what: { kind: "append", batch, group: this.group } });
  }

  private applyOne(change: OrderedChange): number | undefined {
    if (change.kind === "createTable") return this.create(change);
    assert(change.kind !== "append", "rows are added in groups");
    const fork = this.fork(change.tableId);
    this.repeat([
      this.keep({
        ordinal: change.ordinal,
        tableId: change.tableId,
        schema: fork.table.schema,
        what: this.what(fork, change),
      }),
    ]);
  }

  private create(
    { ordinal, table: newTable, rows = [], creator }: Extract<OrderedChange, { kind: "createTable" }>,
  ): number {
    this.checkNameIsFree({ id: -1, name: newTable.name });
    this.store.checkTableCount(this.createdCount);
    this.createdCount++;
    const schema = newSchema(this.store.numbers.takeTableId(), newTable);
    const table = this.store.newTable(schema);
    this.add(table, undefined);
    this.keep({
      ordinal,
      tableId: schema.id,
      schema,
      what: { kind: "definition", definition: creation(schema, creator) },
    });
    this.repeat(rows.map((batch) => this.append(ordinal, schema.id, batch)));
    return schema.id;
  }

  private what(fork: Fork, change: Exclude<Change, { kind: "append" | "createTable" }>): What {
    const { table } = fork;
    switch (change.kind) {
      case "dropTable":
        return { kind: "definition", definition: removal(table.schema, change.permissions) };
      case "truncate":
        return { kind: "definition", definition: { op: "truncate" } };
      case "update": {
        const { ordinals, columns } = inTableOrder(table, change.batches);
        checkUpdate(table.schema, { rowCount: ordinals.length, columns });
        return { kind: "update", ordinals, columns, before: table.segments };
      }
      case "delete": {
        const { ordinals } = inTableOrder(table, change.batches);
        return { kind: "delete", ordinals, before: table.segments };
      }
      case "rename":
        this.checkNameIsFree({ id: table.schema.id, name: change.to });
        return { kind: "definition", definition: definitionOf(table, change) };
      default:
        return { kind: "definition", definition: definitionOf(table, change) };
    }
  }

  private keep(entry: Entry): Entry {
    this.entries.push(entry);
    this.entryBytes += bytesOf(entry.what);
    this.checkLimit();
    return entry;
  }

  /** Applies changes to the forks. */
  private repeat(entries: readonly Entry[], onApplied?: (tableId: number) => void): void {
    const tableOf = (tableId: number) => this.forks.get(tableId)!.table;
    const drop = (tableId: number) => void (this.forks.get(tableId)!.isDropped = true);
    applyEntries(entries, tableOf, drop, onApplied);
  }

  /** Runs between two of many changes: frees memory that only the last one used. */
  private settle(fork: Fork): void {
    this.count(fork);
    this.store.publisher.settle();
  }

  /**
   * Runs `work` and counts the memory that the forks use. If it fails, the forks are restored. `isLimited`: the memory
   * limit applies.
   */
  private guarded<T>(work: () => T, isLimited = true): T {
    const { memory } = this.store;
    const before = [...this.forks.values()].map((fork) => {
      const { segments, schema, nextColumnId } = fork.table;
      const { addedCount } = fork.table.moves;
      return {
        fork,
        table: fork.table,
        isDropped: fork.isDropped,
        addedCount,
        state: { segments, schema, nextColumnId },
      };
    });
    const { entries, entryBytes } = this;
    this.entries = entries.slice();
    this.tailBytesBefore = isLimited ? memory.tailBytes : undefined;
    try {
      const result = work();
      // Check before counting: memory that counting releases cannot be taken back.
      this.checkLimit();
      for (const { table } of this.forks.values()) this.store.publisher.prepare(table.segments, publishedOf(table));
      for (const fork of this.forks.values()) this.count(fork);
      return result;
    } catch (error) {
      const known = new Set(before.map(({ fork }) => fork));
      for (const [id, fork] of this.forks) {
        if (known.has(fork)) continue;
        this.giveUp(fork);
        this.forks.delete(id);
      }
      for (const { fork, table, isDropped, addedCount, state } of before) {
        Object.assign(table, state);
        table.moves.forgetAdded(addedCount);
        Object.assign(fork, { table, isDropped });
        this.count(fork);
      }
      Object.assign(this, { entries, entryBytes });
      this.store.publisher.settle();
      if (!(error instanceof HeapFullError)) throw error;
      throw new SqlError(`Cannot hold the changes: ${error.message}`, 0, SQLSTATE.outOfMemory, { cause: error });
    }
  }

  // ---- tables

  /** Returns the transaction's own state of a table, and forks the table on first use. */
  private fork(tableId: number): Fork {
    const known = this.forks.get(tableId);
    if (known === undefined) {
      const base = this.store.table(tableId);
      return this.add(base.fork(), base);
    }
    if (known.isDropped) {
      throw new SqlError("Cannot find the table: the transaction has dropped it", 0, SQLSTATE.undefinedTable);
    }
    this.checkBase(known);
    return known;
  }

  private add(table: Table, base: Table | undefined): Fork {
    const { segments, schema, nextColumnId } = table;
    const fork: Fork = {
      table,
      base,
      start: { segments, schema, nextColumnId },
      counted: Segments.EMPTY,
      isDropped: false,
      toldDropped: false,
    };
    this.watch(table);
    if (base !== undefined) {
      base.moves.read();
      if (!table.moves.isRead) table.moves.read();
    }
    countLists(table.data, segments.lists, 1, () => {});
    this.forks.set(schema.id, fork);
    return fork;
  }

  /** Stops a change that takes too much memory. */
  private watch(table: Table): void {
    table.onStep = () => this.checkLimit();
  }

  /** Fails if another session has dropped the table: a dropped table no longer shares memory with its forks. */
  private checkBase({ base, table }: Fork): void {
    if (base !== undefined && this.store.tables.get(base.schema.id) !== base) throw tableLost(table.schema.name);
  }

  private checkNameIsFree({ id, name }: { id: number; name: string }): void {
    const lower = name.toLowerCase();
    for (const { table: { schema }, isDropped } of this.forks.values()) {
      if (!isDropped && schema.id !== id && schema.name.toLowerCase() === lower) throw nameIsTaken(name);
    }
    this.store.checkNameIsFree(name, (other) => this.forks.has(other));
  }

  private checkLimit(): void {
    if (this.tailBytesBefore === undefined) return;
    const addedBytes = this.store.memory.tailBytes - this.tailBytesBefore;
    if (this.entryBytes + this.ownBytes + addedBytes <= this.limitBytes) return;
    throw new SqlError(
      `Cannot hold the changes of the transaction: they take more than ${this.limitBytes} bytes (cairo.query.memory.limit): commit in smaller steps, or run the statement outside of a transaction`,
      0,
      SQLSTATE.outOfMemory,
    );
  }

  /** Updates the reference counts: holds the memory that the fork uses and releases what it no longer uses. */
  private count(fork: Fork): void {
    const { table, counted } = fork;
    const splices = table.segments.differenceFrom(counted);
    for (const { added } of splices) {
      countLists(table.data, added, 1, () => {}, (block) => {
        this.ownBlocks.add(block);
        this.ownBytes += block.sizeBytes;
      });
    }
    for (const { start, count } of splices) this.release(table, counted.lists.slice(start, start + count));
    fork.counted = table.segments;
  }

  private release(table: Table, lists: readonly PageList[]): void {
    const { memory, publisher } = this.store;
    countLists(table.data, lists, -1, (block) => {
      if (this.ownBlocks.delete(block)) this.ownBytes -= block.sizeBytes;
      memory.retire(block, publisher.version + 1);
    });
  }

  private giveUp(fork: Fork): void {
    const { table, base, start, counted } = fork;
    this.release(table, counted.lists);
    this.release(table, start.segments.lists);
    for (const [id, dictionary] of table.dictionaries) {
      if (base?.dictionaries.get(id) !== dictionary) dictionary.retire(this.store.publisher.version + 1);
    }
    if (base === undefined) table.data.close();
    else base.moves.release();
  }

  // ---- what the session sees

  private publish(): void {
    const { publisher } = this.store;
    for (const { base } of this.forks.values()) {
      // The session's symbols may have moved a dictionary. Other sessions need its new address.
      const hasGrown = base !== undefined &&
        [...base.dictionaries.values()].some(({ outgrown }) => outgrown.length > 0);
      if (hasGrown) publisher.touch(base);
    }
    publisher.publish({ publication: (version) => this.publication(version) });
  }

  private publication(version: number): BranchPublication {
    const publication: BranchPublication = { transactionId: this.id, tables: [] };
    for (const fork of this.forks.values()) {
      const { table, base, isDropped, toldDropped } = fork;
      fork.toldDropped = isDropped;
      if (isDropped) {
        table.publishedSchema = undefined;
        if (!toldDropped) publication.tables.push({ tableId: table.schema.id, lsn: 0n, dropped: true });
        continue;
      }
      if (table.publishedSchema === table.schema && table.published === table.segments) continue;
      const change = changeOf(table, publishedOf(table));
      change.dictionaries = change.dictionaries?.map((told) => {
        const dictionary = table.dictionaries.get(told.columnId)!;
        if (base?.dictionaries.get(told.columnId) === dictionary) return told;
        for (const block of dictionary.outgrown.splice(0)) this.store.memory.retire(block, version);
        return { ...told, own: true };
      });
      publication.tables.push(change);
      table.published = table.segments;
      table.publishedSchema = table.schema;
      table.publishedDetached = table.detached;
    }
    return publication;
  }

  // ---- commit

  /**
   * Rebases the transaction's changes of a table onto the current state, if others have changed the table since the
   * fork.
   */
  private bringUpToDate(fork: Fork): void {
    const { base, start, table, isDropped } = fork;
    const { id } = table.schema;
    const isOfTable = (entry: Entry) => entry.tableId === id;
    const entries = this.entries.filter(isOfTable);
    if (base === undefined || entries.length === 0) return;
    this.checkBase(fork);
    if (base.damage !== undefined) throw base.damage;
    if (isDropped) return;
    const isReplaced = entries.some(({ what }) => what.kind === "definition" && what.definition.op === "truncate");
    const hasSameSchema = base.schema.schemaVersion === start.schema.schemaVersion;
    if (hasSameSchema && (isReplaced || hasSameRows(base.segments, start.segments))) return;
    if (!hasSameSchema && entries.some(({ what }) => what.kind !== "append")) {
      throw conflict(`the columns or the name of table ${start.schema.name}`);
    }
    if (!hasSameSchema) {
      for (const { what } of entries) if (what.kind === "append") checkBatch(base.schema, what.batch);
    }
    const renewed = this.add(base.fork(), base);
    try {
      const parts = { base, old: table, start: start.segments, table: renewed.table };
      const repeated = rebase(parts, entries, () => this.settle(renewed));
      this.entries = this.entries.filter((entry) => !isOfTable(entry)).concat(repeated);
    } finally {
      this.giveUp(fork);
    }
  }

  private write(): void {
    const { store } = this;
    const blocks = this.entries.map(blockOf);
    const write = () =>
      store.commits.write((log) =>
        blocks.map(({ info, payload }, k) =>
          log.add({ ...info, flags: k === blocks.length - 1 ? FLAG_LAST : 0 }, payload)
        )
      );
    const lsns = this.entries.every(({ what }) => makesRoom(what)) ? store.reserve.use(write) : write();
    const lsnOf = new Map(this.entries.map(({ tableId }, k) => [tableId, lsns[k]]));
    const changed = [...this.forks.values()].filter(({ table }) => lsnOf.has(table.schema.id));
    const bases = changed.map(({ base }) => base).filter((base) => base !== undefined);
    store.commits.apply(lsns, bases, () => {
      this.entries.forEach(({ what }, k) => {
        if (what.kind === "definition") store.access.follow(what.definition.access, lsns[k]);
      });
      // After this point only the creation of a directory can fail.
      for (const { base, table } of changed) if (base === undefined) store.makeDirectory(table);
      for (const { base, table, start, isDropped } of changed) {
        const { id } = table.schema;
        const lsn = lsnOf.get(id)!;
        if (base === undefined) {
          table.lsn = lsn;
          store.take(table);
          this.forks.delete(id); // the table now owns its memory
        } else if (isDropped) store.applyDefinition(base, { op: "drop" }, lsn);
        else {
          base.adopt(table, start.segments);
          base.lsn = lsn;
        }
      }
    });
    const appended = this.entries.map(({ what }) => what).filter((what) => what.kind === "append");
    store.commits.count(1, appended.map(({ batch }) => batch));
    store.expiry.drop(changed.flatMap(({ table }) => store.tables.get(table.schema.id) ?? []));
  }
}

function reset({ table, start }: Fork): void {
  table.segments = start.segments;
  table.schema = start.schema;
  table.nextColumnId = start.nextColumnId;
  table.moves.clear();
}

function nameIsTaken(name: string): SqlError {
  return new SqlError(`Cannot use the name ${name}: a table of that name exists`, 0, SQLSTATE.duplicateTable);
}

function hasSameRows(a: Segments, b: Segments): boolean {
  const rowsOf = (pages: readonly Page[]) => pages.flatMap(({ segments }): readonly Segment[] => segments);
  return a.replacedPages(b).every(({ pages, replaced }) => {
    const now = rowsOf(pages), before = rowsOf(replaced);
    return now.length === before.length &&
      now.every(({ uid, rowCount }, k) => uid === before[k].uid && rowCount === before[k].rowCount);
  });
}

/**
 * Omits row changes that a later truncate made irrelevant, and all changes of tables that were both created and dropped
 * here.
 */
function withoutReplaced(entries: readonly Entry[], isForked: (tableId: number) => boolean): Entry[] {
  const truncated = new Set<number>(), dropped = new Set<number>();
  const kept = entries.toReversed().filter(({ tableId, what }) => {
    if (dropped.has(tableId)) return false;
    if (what.kind !== "definition") return !truncated.has(tableId);
    const { op } = what.definition;
    if (op === "drop") {
      dropped.add(tableId);
      return isForked(tableId);
    }
    if (op !== "truncate") return true;
    const isLast = !truncated.has(tableId);
    truncated.add(tableId);
    return isLast;
  });
  return kept.reverse();
}

function bytesOf(what: What): number {
  if (what.kind === "definition") return 1000;
  let bytes = what.kind === "append" ? 0 : what.ordinals.byteLength;
  const columns = what.kind === "append" ? what.batch.columns : what.kind === "update" ? what.columns : [];
  for (const { values, heap, symbols } of columns) {
    bytes += values.byteLength + (heap?.byteLength ?? 0) + (symbols?.byteLength ?? 0);
  }
  return bytes;
}

/** True for changes that free space: they may use the disk reserve. */
function makesRoom(what: What): boolean {
  return what.kind === "delete" ||
    (what.kind === "definition" && (what.definition.op === "drop" || what.definition.op === "truncate"));
}

function blockOf({ tableId, schema, what }: Entry) {
  const info = { kind: BLOCK_KIND[what.kind], tableId, schemaVersion: schema.schemaVersion };
  switch (what.kind) {
    case "definition":
      return { info, payload: [toJson(what.definition)] };
    case "append":
      return { info, payload: encodeBatch(schema, what.batch) };
    case "update":
      return {
        info,
        payload: encodeBatch(
          schema,
          { rowCount: what.ordinals.length, columns: what.columns },
          encodePlaces(what.ordinals, what.before),
        ),
      };
    case "delete":
      return { info, payload: [encodePlaces(what.ordinals, what.before)] };
  }
}
