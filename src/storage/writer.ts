/**
 * The writing side of storage, single-threaded and synchronous: commands in, outcomes and publications out. The path of a group
 * of commits:
 *
 *     check  →  blocks into the log  →  one sync  →  apply to the tables  →  publish  →  answer
 *
 * So an answered command is durable and visible. After validation only out-of-memory can fail; the group is then rolled back,
 * and an abort block keeps recovery from applying it.
 */
import { assert } from "../assert.ts";
import { ConfigError, SqlError, SQLSTATE } from "../errors.ts";
import type { NewTable } from "../sql/plan.ts";
import { AccessRecords } from "./access.ts";
import { BackgroundFlush } from "./background-flush.ts";
import { CatalogFile } from "./catalog-file.ts";
import { Commits } from "./commits.ts";
import { Numbers } from "./numbers.ts";
import { Seal } from "./seal.ts";
import type { Definition } from "./blocks.ts";
import { type AddColumns, Changes, type Creation, nameIsTaken } from "./changes.ts";
import { ChunkMaker } from "./chunks.ts";
import type { Command, Outcome } from "./commands.ts";
import type { AppendBatch, TableSchema } from "./contract.ts";
import { dictionaryPath } from "./checkpoint.ts";
import { DataFiles, OpenFiles } from "./datafile.ts";
import { applyToTable, definitionOf, newSchema, partitionMoves, removal } from "./definitions.ts";
import { SymbolTable } from "./dictionary.ts";
import { Checkpoints } from "./checkpoints.ts";
import { Conversion } from "./conversion.ts";
import { PACKING } from "./encoding/encodings.ts";
import { Expiry } from "./expiry.ts";
import { join } from "./files.ts";
import { HeapFullError } from "./heap.ts";
import { Idle } from "./idle.ts";
import { LateMerges } from "./late-merges.ts";
import { Loads } from "./loads.ts";
import { WriterMemory } from "./memory.ts";
import { Publisher } from "./publisher.ts";
import { openTable } from "./opening.ts";
import type { WriterOptions } from "./options.ts";
import { recover } from "./recovery.ts";
import { type Rows, toRows } from "./rows.ts";
import { columnById } from "./schema.ts";
import { Repack } from "./repack.ts";
import { DiskReserve } from "./reserve.ts";
import type { Store } from "./store.ts";
import { Flusher } from "./flusher.ts";
import { NOTHING_DETACHED, Table } from "./table.ts";
import { Transactions } from "./transactions.ts";

export class TableStore implements Store {
  readonly tables = new Map<number, Table>();
  readonly report: string[] = [];
  /** Blocks and rows that opening tables has applied from the log since the start. */
  readonly replayed = { blocks: 0, rows: 0, ms: 0 };
  /** Tables with rows in the log, which are opened when the writer is idle. */
  private replayable: Table[] = [];
  readonly access = new AccessRecords();
  readonly publisher: Publisher;
  readonly flusher: Flusher;
  readonly background: BackgroundFlush;
  private readonly changes = new Changes(this);
  readonly transactions = new Transactions(this);
  readonly loads = new Loads(this, () => this.checkpoints.make());
  readonly memory: WriterMemory;
  readonly numbers = new Numbers();
  readonly catalog: CatalogFile;
  readonly seal: Seal;
  /** From the end of recovery on. */
  commits!: Commits;
  private readonly make: ChunkMaker;
  readonly reserve: DiskReserve;
  private closed = false;
  /** Of new chunks. */
  private readonly packing: number;
  private readonly dataFiles: OpenFiles;
  readonly checkpoints = new Checkpoints(this);
  private readonly idle = new Idle(this);
  private readonly conversion = new Conversion(this, this.idle);
  private readonly repack: Repack;
  private readonly merges: LateMerges;
  readonly expiry = new Expiry(this, (table, moves) => this.changes.define(table, { op: "partitions", moves }));
  private lock: { release(): void };

  /** Opens or creates the database. @throws {ConfigError} when another process has it open. */
  constructor(readonly options: WriterOptions) {
    const { files, root, heap } = options;
    this.seal = new Seal(options);
    this.catalog = new CatalogFile(files, root);
    this.memory = new WriterMemory(heap);
    this.memory.onPressure = (sizeBytes) => options.evict(sizeBytes);
    this.packing = options.encoding === "raw" ? 0 : PACKING;
    this.dataFiles = new OpenFiles(files);
    this.make = new ChunkMaker(this.memory, options.encoding ?? "auto", options.segmentRowsMax);
    this.publisher = new Publisher(this.memory, this.access, options, () => this.commits?.log.lastLsn ?? 0);
    // Without encoding there is nothing to do on other threads.
    this.background = new BackgroundFlush(options.encoding === "raw" ? undefined : options.encoders, {
      heap,
      tables: this.tables,
      memory: this.memory,
      publisher: this.publisher,
      mayWrite: () => !this.seal.isSet,
      exists: (table) => {
        const known = this.tables.get(table.schema.id);
        return (known?.data === table.data && known.damage === undefined) || this.loads.has(table);
      },
      patienceMs: options.patienceMs,
    });
    this.merges = new LateMerges(options.mergers, { memory: this.memory, version: () => this.publisher.version });
    this.repack = new Repack(this, this.idle);
    this.flusher = new Flusher(this.tables, this.memory, this.publisher, this.background, options);
    files.makeDirectory(root);
    this.reserve = new DiskReserve(files, join(root, "reserve"), options.reserveBytes, options.log);
    const lock = files.lock(join(root, "lock"));
    if (lock === undefined) throw new ConfigError("cairo.root", `${root} is in use by another process`);
    this.lock = lock;
    try {
      this.commits = new Commits(recover(this), this);
      this.replayable = [...this.tables.values()].filter(({ unread }) =>
        unread !== undefined && unread.blocks.length > 0
      );
      const blocks = this.replayable.reduce((sum, { unread }) => sum + unread!.blocks.length, 0);
      if (blocks > 0) this.report.push(`${blocks} blocks of the log come on top of ${this.replayable.length} tables`);
      this.publisher.publish();
      this.reserve.keep();
      this.flusher.whenOverBudget();
      // The last process may have ended between a change and the drop that follows it.
      this.expiry.drop(this.tables.values());
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  get logDirectory(): string {
    return join(this.options.root, "log");
  }

  /** Executes commands in order. Neighbours that add rows, that create tables, or that add columns to different tables form one group. */
  execute(commands: readonly Command[]): Outcome[] {
    this.idle.wasUsed();
    const outcomes: Outcome[] = [];
    for (let k = 0; k < commands.length;) {
      const { kind } = commands[k];
      let end = k + 1;
      if (kind === "append" || kind === "createTable") { while (commands[end]?.kind === kind) end++; }
      if (kind === "addColumns") end = endOfAdditions(commands, k);
      const group = commands.slice(k, end);
      try {
        if (this.closed) throw new Error("the database is closed");
        if (group[0].kind === "createTable") outcomes.push(...this.changes.create(group as Creation[]));
        else if (group[0].kind === "append") {
          outcomes.push(...this.changes.append(group as (Command & { kind: "append" })[]));
        } else if (group.length > 1) outcomes.push(...this.changes.addColumns(group as AddColumns[]));
        else outcomes.push({ value: this.executeOne(group[0]) });
      } catch (error) {
        for (let n = 0; n < group.length; n++) outcomes.push({ error });
      }
      k = end;
    }
    return outcomes;
  }

  /** Called when there is time: frees memory and does a part of the due work. `isIdle`: no command came for a while. */
  maintain(isIdle = false): void {
    if (this.closed) return;
    this.merges.collect();
    this.publisher.reclaim();
    this.checkpoints.collect();
    this.flusher.whenOverBudget();
    if (isIdle && this.replayable.length > 0) return this.replayNext();
    if (this.seal.isSet) return;
    this.expiry.whenDue();
    this.checkpoints.maintain(isIdle);
    if (!isIdle || this.checkpoints.isUnderway) return;
    if (this.conversion.isDue) this.conversion.step();
    else if (this.repack.isDue) this.repack.step();
  }

  get hasTransactions(): boolean {
    return this.transactions.areOpen;
  }

  isRepacking(table: Table): boolean {
    return this.repack.isUnderway(table);
  }

  requestCheckpoint(): void {
    this.checkpoints.request();
  }

  /**
   * A checkpoint is in progress, tables with rows in the log are not opened yet, or other threads have encoded segments: `maintain` has
   * more to do.
   */
  get isBusy(): boolean {
    return this.replayable.length > 0 || this.background.hasOutcomes || (this.checkpoints.isBusy && !this.seal.isSet) ||
      this.mayStoreAnew;
  }

  private get mayStoreAnew(): boolean {
    return !this.checkpoints.isUnderway && !this.seal.isSet && (this.conversion.isDue || this.repack.isDue);
  }

  /** Nothing can be done before other threads have encoded segments, unless they take too long. */
  get isWaiting(): boolean {
    return (this.checkpoints.isUnderway || this.repack.isWaiting) && !this.seal.isSet;
  }

  /** Opens a table whose rows are in the log, so that its first reader and the next checkpoint need not. */
  private replayNext(): void {
    const table = this.replayable.pop()!;
    try {
      if (this.tables.get(table.schema.id) === table) this.open(table);
    } catch (error) {
      this.options.log("ERROR", `table ${table.schema.name} could not be opened: ${(error as Error).message}`);
    }
    if (this.replayable.length > 0) return;
    const { blocks, rows, ms } = this.replayed;
    this.options.log("INFO", `replayed ${blocks} blocks with ${rows} rows from the log in ${Math.round(ms)} ms`);
  }

  // ---- commands

  private executeOne(command: Exclude<Command, { kind: "append" | "createTable" }>): number | undefined {
    switch (command.kind) {
      case "dropTable": {
        const table = this.find(command.tableId);
        return this.changes.define(table, removal(table.schema, command.permissions));
      }
      case "truncate":
        return this.changes.define(this.table(command.tableId), { op: "truncate" });
      case "rename": {
        const table = this.table(command.tableId);
        this.checkNameIsFree(command.to);
        return this.changes.define(table, definitionOf(table, command));
      }
      case "addColumns":
      case "dropColumns":
      case "renameColumn":
      case "setColumn": {
        const table = this.table(command.tableId);
        return this.changes.define(table, definitionOf(table, command));
      }
      case "setOptions": {
        const table = this.table(command.tableId);
        this.changes.define(table, definitionOf(table, command));
        return this.expiry.drop([table]);
      }
      case "partitions": {
        const table = this.table(command.tableId);
        return this.changes.define(table, partitionMoves(table, command.moves));
      }
      case "update":
        return this.changes.update(this.table(command.tableId), command.batches);
      case "delete":
        return this.changes.delete(this.table(command.tableId), command.batches);
      case "changeAccess":
        return this.changes.changeAccess(command.changes);
      case "change":
      case "fork":
      case "rollbackTo":
      case "commit":
      case "rollback":
        return this.transactions.execute(command);
      case "beginLoad":
      case "beginAppend":
      case "beginChange":
      case "beginTypeChange":
      case "load":
      case "prepareLoad":
      case "endLoad":
      case "abortLoad":
        return this.loads.execute(command);
      case "open": {
        const table = this.tables.get(command.tableId);
        if (table !== undefined) this.open(table);
        // Memory may have been too short to publish a table that was opened.
        return this.publisher.publish() as undefined;
      }
      case "checkpoint":
        this.seal.check();
        return this.checkpoints.make();
      case "hold":
        // A read-only database changes no file any more.
        if (!this.seal.isSet) this.checkpoints.make();
        this.publisher.holds++;
        return;
      case "release":
        this.publisher.holds = Math.max(0, this.publisher.holds - 1);
        return;
      case "holdLog":
        return this.commits.log.hold(command.name, command.lsn);
      case "releaseLog":
        return void this.commits.log.release(command.name);
      case "close":
        return this.close();
      case "crash":
        throw new Error(command.text);
    }
  }

  newSchema(table: NewTable, place = 0): TableSchema {
    this.seal.check();
    this.checkNameIsFree(table.name);
    this.checkTableCount(place);
    return newSchema(this.numbers.next.tableId + place, table);
  }

  /** @throws {SqlError} if no table can be created besides `more` that are being created. */
  checkTableCount(more: number): void {
    const { tableCountMax = Infinity } = this.options;
    if (this.tables.size + more < tableCountMax) return;
    throw new SqlError(
      `Cannot create a table: the database has ${
        this.tables.size + more
      }, and at most ${tableCountMax} are allowed (cairo.max.tables)`,
      0,
      SQLSTATE.configurationLimitExceeded,
    );
  }

  // ---- also used by opening and recovery

  /** Reads a table that has not been opened since the start, and publishes it, or as much of it as memory allowed. */
  open(table: Table): undefined {
    if (table.unread === undefined) return;
    try {
      openTable(this, table);
    } catch (error) {
      if (error instanceof HeapFullError) {
        throw new SqlError(`Cannot open table ${table.schema.name}: ${error.message}`, 0, SQLSTATE.outOfMemory, {
          cause: error,
        });
      }
      throw error;
    } finally {
      this.publisher.touch(table);
      this.publisher.publish();
    }
    this.expiry.drop([table]);
  }

  /**
   * Makes an empty directory, whatever an interrupted load has left there. An empty one is kept: a full disk may not
   * allow a new one.
   */
  makeDirectory({ directory }: Table): void {
    const { files } = this.options;
    if (files.exists(directory) && files.list(directory).length === 0) return;
    files.removeDirectory(directory);
    files.makeDirectory(directory);
  }

  newTable(schema: TableSchema): Table {
    const directory = join(this.options.root, `t${schema.id}`);
    const data = new DataFiles(
      this.options.files,
      this.dataFiles,
      directory,
      () => this.numbers.takeFileId(),
      this.packing,
    );
    const table = new Table(
      schema,
      directory,
      data,
      this.make,
      this.options.heap,
      () => new SymbolTable(this.memory),
      this.merges,
    );
    this.watch(table);
    return table;
  }

  private watch(table: Table): void {
    table.onStep = () => this.flusher.duringLoad(table);
  }

  /** Adds a table that a transaction has created. The next publication makes it visible to all. */
  take(table: Table): void {
    this.watch(table);
    table.published = table.segments; // whose memory is already counted
    table.publishedSchema = undefined;
    table.changed = true;
    this.tables.set(table.schema.id, table);
    this.publisher.touch(table);
  }

  applyDefinition(table: Table, definition: Definition, lsn: number): void {
    this.publisher.touch(table);
    table.lsn = lsn;
    table.changed = true;
    assert(definition.op !== "create", "a table is created once");
    if (definition.op !== "drop") return applyToTable(table, definition);
    table.unread = undefined;
    table.truncate();
    table.detached = NOTHING_DETACHED;
    this.tables.delete(table.schema.id);
    this.publisher.drop(table);
  }

  applyRows(table: Table, batches: readonly AppendBatch[]): void {
    this.publisher.touch(table);
    const parts: Rows[] = [];
    for (const batch of batches) {
      if (batch.rowCount > 0) parts.push(toRows(table.schema, batch, (id) => table.dictionary(id)));
    }
    if (parts.length > 0) table.append(parts);
  }

  /**
   * Called by a checkpoint when the table's manifest is durable. Files that it does not list are removed once no reader
   * uses them.
   */
  stored(table: Table): void {
    this.publisher.touch(table);
    this.publisher.publish();
    table.changed = false;
    this.releaseDictionaries(table);
    this.repack.look(table);
    for (const file of table.data.list.values()) {
      if (file.liveBytes > 0 || file === table.data.last) continue;
      table.data.forget(file.id);
      this.publisher.removeLater(() => this.options.files.remove(file.path));
    }
  }

  /**
   * Frees the dictionaries of columns that a table no longer has, once its manifest says so. Transactions and loads may have begun when it
   * had them: then a later checkpoint does it.
   */
  releaseDictionaries(table: Table): void {
    if (this.transactions.areOpen || this.loads.areUnderway) return;
    const { publisher, options: { files } } = this;
    for (const [columnId, dictionary] of table.dictionaries) {
      if (columnById(table.schema, columnId) !== undefined) continue;
      table.dictionaries.delete(columnId);
      dictionary.retire(publisher.version);
      const path = dictionaryPath(table.directory, columnId);
      if (dictionary.stored.sizeBytes > 0) publisher.removeLater(() => files.remove(path));
    }
  }

  private close(): undefined {
    this.closed = true;
    this.loads.abortAll();
    try {
      if (!this.seal.isSet) this.checkpoints.make();
    } finally {
      for (const table of this.tables.values()) table.data.close();
      this.commits.log.close();
      this.lock.release();
    }
  }

  // ---- lookups

  /** Returns an open, undamaged table. */
  table(id: number): Table {
    const table = this.find(id);
    this.open(table);
    if (table.damage !== undefined) throw table.damage;
    return table;
  }

  private find(id: number): Table {
    const table = this.tables.get(id);
    if (table === undefined) throw new SqlError("Cannot find the table: it was dropped", 0, SQLSTATE.undefinedTable);
    return table;
  }

  /** `except`: tables whose names are ignored. */
  checkNameIsFree(name: string, except: (tableId: number) => boolean = () => false): void {
    const lower = name.toLowerCase();
    for (const { schema } of this.tables.values()) {
      if (schema.name.toLowerCase() === lower && !except(schema.id)) throw nameIsTaken(name);
    }
  }
}

/** The end of the commands from `start` on that add columns, each to another table: what a command adds depends on the columns before. */
function endOfAdditions(commands: readonly Command[], start: number): number {
  const tables = new Set<number>();
  let end = start;
  for (let command = commands[end]; command?.kind === "addColumns"; command = commands[++end]) {
    if (tables.has(command.tableId)) break;
    tables.add(command.tableId);
  }
  return end;
}
