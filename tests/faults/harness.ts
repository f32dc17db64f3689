/** Runs a scripted database on the faulty file system, beside a simple model. */
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { allOf } from "../../src/access/mod.ts";
import type { CatalogueMirror } from "../../src/storage/catalogue.ts";
import type { Command, Outcome } from "../../src/storage/commands.ts";
import type { Change, TableSnapshot } from "../../src/storage/contract.ts";
import { TableClosedError } from "../../src/errors.ts";
import { Died } from "../../src/storage/faulty-files.ts";
import type { Files } from "../../src/storage/files.ts";
import { createHeap, type SharedHeap } from "../../src/storage/heap.ts";
import { packAppendBatch } from "../../src/storage/packed.ts";
import type { SharedPool } from "../../src/storage/pool.ts";
import { LIMITS } from "../../src/storage/packing.ts";
import { WAITING_MAX } from "../../src/storage/staged-changes.ts";
import { MERGE_HELP } from "../../src/storage/late-merges.ts";
import { MERGE_STEP } from "../../src/storage/staged-rows.ts";
import { batchOf, newTable, readRows, rowIdsOf } from "../../src/storage/test-rows.ts";
import { TestMergers } from "../../src/storage/test-mergers.ts";
import { openTestStore } from "../../src/storage/test-store.ts";
import type { TableStore } from "../../src/storage/writer.ts";
import type { Value } from "../../src/types/mod.ts";

// So that small tables have many pages and lists of pages.
Object.assign(LIMITS, { pageMin: 4, pageMax: 8, listMax: 2, listMin: 2 });
WAITING_MAX.rows = 10;
Object.assign(MERGE_HELP, { bytesMin: 0, skipped: 0 });
// So that late rows of one segment take several steps.
Object.assign(MERGE_STEP, { rows: 3, bytes: 500 });

export type Random = () => number;

/** A small linear congruential generator; failures print the seed. */
export function randomOf(seed: number): Random {
  let state = (seed * 2654435761) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

interface ModelTable {
  /** In table order. */
  columns: { name: string; type: string; id: number }[];
  nextColumnId: number;
  timestamp: string | undefined;
  rows: Record<number, Value>[];
  /** Rows of detached days. */
  detached?: Record<number, Value>[];
  /** Columns that, with the timestamp, form the deduplication key. */
  dedupKeys?: number[];
  /** Days that ended this many days before the newest row are dropped. */
  ttlDays?: number;
}

export type Model = Map<string, ModelTable>;

const copied = (rows: Record<number, Value>[] = []) => rows.map((row) => ({ ...row }));

const cloneModel = (model: Model): Model =>
  new Map(
    [...model].map((
      [name, table],
    ) => [name, { ...table, columns: [...table.columns], rows: copied(table.rows), detached: copied(table.detached) }]),
  );

/** An open database with its readers' side. */
export class Opened<F extends Files = Files> {
  readonly store: TableStore;
  readonly catalogue: CatalogueMirror;
  readonly pool: SharedPool;
  readonly logged: string[] = [];
  readonly mergers: TestMergers;

  constructor(
    readonly files: F,
    readonly heap: SharedHeap,
    random: Random,
    more: { root?: string; checkpointLogBytes?: number; memoryBytes?: number; commitMode?: "sync" | "nosync" } = {},
  ) {
    // With numbers of its own, so that it does not change the script.
    this.mergers = new TestMergers(heap, files, randomOf(1));
    ({ store: this.store, catalogue: this.catalogue, pool: this.pool } = openTestStore(heap, files, {
      mergers: this.mergers,
      root: more.root ?? "/db",
      // If checkpoints are made between commands, commands come between the steps of a compaction, too.
      compactStepBytes: more.checkpointLogBytes === undefined ? undefined : 2_000,
      flushStepBytes: more.checkpointLogBytes === undefined ? undefined : 500,
      commitMode: more.commitMode ?? "sync",
      log: (level, message) => this.logged.push(`${level} ${message}`),
      onDamage: (message) => this.logged.push(`CRITICAL ${message}`),
      checkpointLogBytes: more.checkpointLogBytes ?? 1 << 30,
      checkpointStepMs: 0,
      memoryBytes: more.memoryBytes ?? 100_000,
      random,
      nowMicros: () => 2n ** 60n,
      reserveBytes: 10_000,
      segmentRowsMax: 8,
      idleMs: 0,
    }));
  }

  rows({ schema }: TableSnapshot): Value[][] {
    return this.opening(() => readRows(this.heap, this.pool, this.catalogue.tableById(schema.id)!));
  }

  /** Returns what `read` returns, opening the tables that it needs. */
  opening<T>(read: () => T): T {
    for (;;) {
      try {
        return read();
      } catch (error) {
        if (!(error instanceof TableClosedError)) throw error;
        const [{ error: failure }] = this.store.execute([{ kind: "open", tableId: error.tableId }]);
        if (failure !== undefined) throw failure;
      }
    }
  }
}

let sharedHeap: SharedHeap | undefined;

/** One heap for all databases: new ones would exhaust the address space before the old ones are collected. */
export function testHeap(): SharedHeap {
  return sharedHeap ??= createHeap(48 << 20);
}

export interface Step {
  title: string;
  /** If several, only the last one changes the visible state. Each is executed before the next one is made. */
  command(db: Opened): Command | Iterable<Command>;
  apply(model: Model): void;
}

export function sortStable(table: ModelTable): void {
  if (table.timestamp === undefined) return;
  const id = table.columns.find((column) => column.name === table.timestamp)!.id;
  table.rows = table.rows.map((row, k) => ({ row, k })).sort((a, b) => {
    const x = a.row[id] as bigint, y = b.row[id] as bigint;
    return x < y ? -1 : x > y ? 1 : a.k - b.k;
  }).map(({ row }) => row);
}

function idOf(db: Opened, name: string): number {
  return db.catalogue.table(name)!.schema.id;
}

export function create(
  name: string,
  columns: Record<string, string>,
  timestamp?: string,
  rows: Record<number, Value>[] = [],
  { dedupKeys, ttlDays, creator }: Pick<ModelTable, "dedupKeys" | "ttlDays"> & { creator?: string } = {},
): Step {
  const types = Object.fromEntries(Object.values(columns).map((type, id) => [id, type]));
  return {
    title: `create ${name}`,
    command: () => ({
      kind: "createTable",
      table: {
        ...newTable(name, columns, timestamp),
        dedupKeys: dedupKeys === undefined ? [] : [Object.keys(columns).indexOf(timestamp!), ...dedupKeys],
        ttl: ttlDays === undefined ? undefined : { count: ttlDays, unit: "DAY" },
      },
      rows: rows.length ? [batchOf(types, rows)] : [],
      creator,
    }),
    apply(model) {
      const table: ModelTable = {
        columns: Object.entries(columns).map(([column, type], id) => ({ name: column, type, id })),
        nextColumnId: Object.keys(columns).length,
        timestamp,
        rows: [],
        dedupKeys,
        ttlDays,
      };
      addRows(table, rows);
      model.set(name, table);
    },
  };
}

/** A bulk load: the rows of a new table, in batches. */
export function load(
  name: string,
  columns: Record<string, string>,
  timestamp: string,
  batches: Record<number, Value>[][],
): Step {
  const types = Object.fromEntries(Object.values(columns).map((type, id) => [id, type]));
  return {
    title: `load ${name}`,
    command: (db) => [
      { kind: "beginLoad", table: newTable(name, columns, timestamp) },
      ...batches.map((rows): Command => ({
        kind: "load",
        loadId: db.store.numbers.next.tableId,
        packed: packAppendBatch(batchOf(types, rows)),
      })),
      { kind: "endLoad", loadId: db.store.numbers.next.tableId },
    ],
    apply: create(name, columns, timestamp, batches.flat()).apply,
  };
}

/** Many rows for a table, in batches that do not go through the log. */
export function loadInto(name: string, batches: Record<number, Value>[][]): Step {
  return {
    title: `load into ${name}`,
    *command(db) {
      const { id: tableId, columns } = db.catalogue.table(name)!.schema;
      const known = columns.filter(({ id }) => id in batches[0][0]);
      const types = Object.fromEntries(known.map(({ id, type }) => [id, type]));
      yield { kind: "beginAppend", tableId, columnIds: known.map(({ id }) => id) };
      const loadId = db.store.loads.newestStageId;
      for (const rows of batches) yield { kind: "load", loadId, packed: packAppendBatch(batchOf(types, rows)) };
      // Some of the steps: the others are left for the end.
      for (let k = 0; k < 8; k++) yield { kind: "prepareLoad", loadId };
      yield { kind: "endLoad", loadId };
    },
    apply: append({ [name]: batches.flat() }).apply,
  };
}

/** Adds rows like the table does: later rows replace those with the same keys, and expired ones are dropped. */
function addRows(table: ModelTable, rows: readonly Record<number, Value>[]): void {
  const time = table.columns.find((column) => column.name === table.timestamp)?.id;
  for (const row of rows) {
    if (table.dedupKeys !== undefined) {
      const keys = [time!, ...table.dedupKeys];
      table.rows = table.rows.filter((other) => keys.some((id) => other[id] !== row[id]));
    }
    table.rows.push({ ...row });
  }
  sortStable(table);
  dropExpired(table);
}

/** The writer's clock is far ahead, so the newest row decides. */
function dropExpired(table: ModelTable): void {
  const time = table.columns.find((column) => column.name === table.timestamp)?.id;
  const { ttlDays } = table;
  if (ttlDays === undefined || table.rows.length === 0) return;
  const day = BigInt(DAY);
  const cutoff = (table.rows.at(-1)![time!] as bigint) - BigInt(ttlDays) * day;
  table.rows = table.rows.filter((row) => ((row[time!] as bigint) / day + 1n) * day > cutoff);
}

function unexpired(rows: Value[][], time: number, ttlDays: number): Value[][] {
  const table: ModelTable = {
    columns: [{ name: "ts", type: "TIMESTAMP", id: time }],
    nextColumnId: 0,
    timestamp: "ts",
    rows: rows.map((row) => ({ ...row })),
    ttlDays,
  };
  dropExpired(table);
  return table.rows.map((row) => Object.values(row));
}

/** Moves the partitions of these days. */
export function movePartitions(
  name: string,
  from: "attached" | "detached",
  to: "attached" | "detached" | "nowhere",
  days: readonly number[],
): Step {
  return {
    title: `move days ${days} of ${name} from ${from} to ${to}`,
    command: (db) => ({
      kind: "partitions",
      tableId: idOf(db, name),
      moves: days.map((day) => ({ start: BigInt(day) * BigInt(DAY), from, to })),
    }),
    apply(model) {
      const table = model.get(name)!;
      const time = table.columns.find((column) => column.name === table.timestamp)!.id;
      const isMoved = (row: Record<number, Value>) => days.includes(Number((row[time] as bigint) / BigInt(DAY)));
      const list = (place: string) => (place === "attached" ? table.rows : place === "detached" ? table.detached! : []);
      const moved = list(from).filter(isMoved);
      assert.ok(moved.length > 0, "there are rows to be moved");
      const kept = list(from).filter((row) => !isMoved(row));
      if (from === "attached") table.rows = kept;
      else table.detached = kept;
      if (to === "attached") table.rows = [...table.rows, ...moved];
      if (to === "detached") table.detached = [...table.detached!, ...moved];
      sortStable(table);
    },
  };
}

export function setTtl(name: string, ttlDays: number | undefined): Step {
  return {
    title: `set the time to live of ${name}`,
    command: (db) => ({
      kind: "setOptions",
      tableId: idOf(db, name),
      options: { ttl: ttlDays === undefined ? null : { count: ttlDays, unit: "DAY" } },
    }),
    apply(model) {
      const table = model.get(name)!;
      table.ttlDays = ttlDays;
      dropExpired(table);
    },
  };
}

/** `keys`: columns besides the timestamp; undefined: none. */
export function setDedup(name: string, keys: number[] | undefined): Step {
  return {
    title: `set the keys of ${name}`,
    command: (db) => {
      const { id, timestampId } = db.catalogue.table(name)!.schema;
      const dedupKeys = keys === undefined ? [] : [timestampId, ...keys];
      return { kind: "setOptions", tableId: id, options: { dedupKeys } };
    },
    apply: (model) => void (model.get(name)!.dedupKeys = keys),
  };
}

/** `make` returns the values of a row; columns that the table lacks at that time are left out. */
export function append(changes: Record<string, Record<number, Value>[]>): Step {
  return {
    title: `append to ${Object.keys(changes).join(", ")}`,
    command: (db) => ({
      kind: "append",
      changes: Object.entries(changes).map(([name, rows]) => {
        const { schema } = db.catalogue.table(name)!;
        const types = Object.fromEntries(
          schema.columns.filter(({ id }) => id in rows[0]).map(({ id, type }) => [id, type]),
        );
        return { tableId: schema.id, batches: [batchOf(types, rows)] };
      }),
    }),
    apply(model) {
      for (const [name, rows] of Object.entries(changes)) {
        const table = model.get(name)!;
        addRows(table, rows.map((row) => Object.fromEntries(table.columns.map(({ id }) => [id, row[id] ?? null]))));
      }
    },
  };
}

/** Changes rows selected by their ordinals. */
export function change(
  name: string,
  picks: (place: number) => boolean,
  columnId: number | undefined,
  value: (place: number) => Value,
): Step {
  const placesOf = (count: number) => Array.from({ length: count }, (_, k) => k).filter(picks);
  return {
    title: columnId === undefined ? `delete from ${name}` : `update ${name}`,
    command(db) {
      const snapshot = db.catalogue.table(name)!;
      const places = placesOf(snapshot.rowCount);
      const rowIds = rowIdsOf(snapshot, places);
      const base = { tableId: snapshot.schema.id };
      if (columnId === undefined) return { kind: "delete", ...base, batches: [{ rowIds, columns: [] }] };
      const type = snapshot.schema.columns.find((column) => column.id === columnId)!.type;
      const { columns } = batchOf({ [columnId]: type }, places.map((place) => ({ [columnId]: value(place) })));
      return { kind: "update", ...base, batches: [{ rowIds, columns }] };
    },
    apply(model) {
      const table = model.get(name)!;
      const places = new Set(placesOf(table.rows.length));
      if (columnId === undefined) table.rows = table.rows.filter((_, k) => !places.has(k));
      else for (const place of places) table.rows[place] = { ...table.rows[place], [columnId]: value(place) };
    },
  };
}

/** The same with many rows, in batches that do not go through the log. Rows of a segment come in several of them. */
export function changeMany(...parameters: Parameters<typeof change>): Step {
  const [name, picks, columnId, value] = parameters;
  const step = change(...parameters);
  return {
    ...step,
    title: `${step.title}, many rows`,
    *command(db) {
      const { id: tableId, columns } = db.catalogue.table(name)!.schema;
      yield { kind: "open", tableId };
      const snapshot = db.catalogue.table(name)!;
      const columnIds = columnId === undefined ? [] : [columnId];
      yield { kind: "beginChange", change: columnId === undefined ? "delete" : "update", tableId, columnIds };
      const loadId = db.store.loads.newestStageId;
      const types = Object.fromEntries(columnIds.map((id) => [id, columns.find((column) => column.id === id)!.type]));
      const places = Array.from({ length: snapshot.rowCount }, (_, k) => k).filter(picks);
      for (const part of [2, 0, 3, 1]) {
        const some = places.filter((place) => place % 4 === part);
        const ids = new Uint8Array(rowIdsOf(snapshot, some).buffer);
        const batch = batchOf(types, some.map((place) => ({ [columnId ?? 0]: value(place) })));
        yield {
          kind: "load",
          loadId,
          packed: packAppendBatch({ ...batch, columns: [...batch.columns, { columnId: -1, values: ids }] }),
        };
      }
      yield { kind: "endLoad", loadId };
    },
  };
}

const newColumn = (name: string, type: string) => ({
  name,
  type,
  indexed: false,
  symbolCapacity: 16,
  symbolCached: true,
});

export function addColumn(name: string, column: string, type: string): Step {
  return {
    title: `add a column to ${name}`,
    command: (db) => ({ kind: "addColumns", tableId: idOf(db, name), columns: [newColumn(column, type)] }),
    apply(model) {
      const table = model.get(name)!;
      const id = table.nextColumnId++;
      table.columns.push({ name: column, type, id });
      for (const row of [...table.rows, ...table.detached ?? []]) row[id] = null;
    },
  };
}

export function dropColumns(name: string, ...columnIds: number[]): Step {
  return {
    title: `drop columns of ${name}`,
    command: (db) => ({ kind: "dropColumns", tableId: idOf(db, name), columnIds }),
    apply(model) {
      const table = model.get(name)!;
      table.columns = table.columns.filter(({ id }) => !columnIds.includes(id));
    },
  };
}

export function renameColumn(name: string, columnId: number, to: string): Step {
  return {
    title: `rename a column of ${name}`,
    command: (db) => ({ kind: "renameColumn", tableId: idOf(db, name), columnId, to }),
    apply(model) {
      const table = model.get(name)!;
      table.columns = table.columns.map((column) => (column.id === columnId ? { ...column, name: to } : column));
    },
  };
}

/** Converts a column to texts. Some segments are converted before the end. */
export function convertColumn(name: string, columnId: number, type: string): Step {
  return {
    title: `convert a column of ${name}`,
    *command(db) {
      const { id: tableId, columns } = db.catalogue.table(name)!.schema;
      const known = columns.find(({ id }) => id === columnId)!;
      yield { kind: "beginTypeChange", tableId, columnId, column: newColumn(known.name, type) };
      const loadId = db.store.loads.newestStageId;
      for (let k = 0; k < 3; k++) yield { kind: "prepareLoad", loadId };
      yield { kind: "endLoad", loadId };
    },
    apply(model) {
      const table = model.get(name)!;
      const id = table.nextColumnId++;
      table.columns = table.columns.map((column) => column.id === columnId ? { ...column, id, type } : column);
      for (const row of [...table.rows, ...table.detached ?? []]) {
        row[id] = row[columnId] === null ? null : String(row[columnId]);
        delete row[columnId];
      }
    },
  };
}

export function rename(name: string, to: string): Step {
  return {
    title: `rename ${name}`,
    command: (db) => ({ kind: "rename", tableId: idOf(db, name), to }),
    apply(model) {
      model.set(to, model.get(name)!);
      model.delete(name);
    },
  };
}

export function truncate(name: string): Step {
  return {
    title: `truncate ${name}`,
    command: (db) => ({ kind: "truncate", tableId: idOf(db, name) }),
    apply: (model) => void (model.get(name)!.rows = []),
  };
}

export function drop(name: string): Step {
  return {
    title: `drop ${name}`,
    command: (db) => ({ kind: "dropTable", tableId: idOf(db, name) }),
    apply: (model) => void model.delete(name),
  };
}

/** Key of the access control records among the model's tables. */
export const ACCESS = "(access)";

/** Sets access control records; null removes one. */
export function changeAccess(records: Record<string, string | null>): Step {
  return {
    title: `change access: ${Object.keys(records).join(", ")}`,
    command: (db) => ({
      kind: "changeAccess",
      changes: Object.entries(records).map(([key, after]) => ({
        key,
        before: db.catalogue.access.records.get(key) ?? null,
        after,
      })),
    }),
    apply: (model) => setRecords(model, records),
  };
}

export function setRecords(model: Model, records: Record<string, string | null>): void {
  const known = Object.fromEntries((model.get(ACCESS)?.rows ?? []).map((row) => [row[0], row[1]]));
  const rows = Object.entries({ ...known, ...records }).filter(([, text]) => text !== null).sort()
    .map(([key, text]) => ({ 0: key, 1: text } as Record<number, Value>));
  const columns = ["key", "text"].map((name, id) => ({ name, type: "STRING", id }));
  model.set(ACCESS, { columns, nextColumnId: 2, timestamp: undefined, rows });
}

/** `step` also sets these access control records. */
export function withAccess(step: Step, records: Record<string, string | null>): Step {
  return {
    ...step,
    apply(model) {
      step.apply(model);
      setRecords(model, records);
    },
  };
}

export const checkpoint: Step = { title: "checkpoint", command: () => ({ kind: "checkpoint" }), apply() {} };

interface TransactionParts {
  /** Tables whose rows are changed. */
  forks: string[];
  /** Steps that are undone, by a rollback to a savepoint before `steps`. */
  undone?: Step[];
  steps: Step[];
  /** The transaction is rolled back at the end. */
  isRolledBack?: boolean;
}

let transactionCount = 0;

/** Steps that become visible together or not at all. */
export function transaction({ forks, undone = [], steps, isRolledBack }: TransactionParts): Step {
  return {
    title: `${isRolledBack ? "roll back" : "commit"}: ${steps.map(({ title }) => title).join(", ")}`,
    *command(db) {
      const id = { transactionId: ++transactionCount, limitBytes: 4 << 20 };
      const own = Object.create(db, { catalogue: { value: db.catalogue.branch(id.transactionId) } }) as Opened;
      for (const name of forks) yield { kind: "fork", ...id, tableId: idOf(own, name) };
      let ordinal = 0;
      const changes = function* (parts: Step[]): Iterable<Command> {
        for (const step of parts) {
          const change = step.command(own) as Change;
          yield { kind: "change", ...id, changes: [{ ...change, ordinal: ++ordinal }] };
        }
      };
      yield* changes(undone);
      if (undone.length > 0) yield { kind: "rollbackTo", ...id, ordinal: 0 };
      yield* changes(steps);
      if (isRolledBack) yield { kind: "rollback", ...id };
      else yield { kind: "commit", ...id, changes: [] };
    },
    apply(model) {
      if (!isRolledBack) { for (const step of steps) step.apply(model); }
    },
  };
}

/** The last outcome, or the first error. */
export function run(db: Opened, step: Step): Outcome {
  let outcome: Outcome = {};
  try {
    const made = db.opening(() => step.command(db));
    for (const command of Symbol.iterator in made ? made : [made]) {
      [outcome] = db.store.execute([command]);
      if (outcome.error !== undefined) break;
    }
  } catch (error) {
    return { error };
  }
  return outcome;
}

/** The result of `work`; undefined if the process dies meanwhile. */
export function unlessDead<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof Died) return undefined;
    throw error;
  }
}

/** The models that may be found after `done` of `steps` are acknowledged: after that many steps, or one more. */
export class History {
  readonly models: Model[];

  /** `start`: what the database has before the first step. */
  constructor(readonly steps: readonly Step[], start: Model = new Map()) {
    this.models = [start];
    for (const step of steps) {
      const model = cloneModel(this.models.at(-1)!);
      step.apply(model);
      this.models.push(model);
    }
  }

  /**
   * Runs steps starting with `from` until all are done or the process dies. Returns the total number of acknowledged
   * steps.
   */
  play(db: Opened, from = 0, acknowledged: (done: number) => void = () => {}): number {
    for (let k = from; k < this.steps.length; k++) {
      const { error } = run(db, this.steps[k]);
      if (error instanceof Died) return k;
      assert.equal(error, undefined, `step ${k}, ${this.steps[k].title}: ${error}`);
      acknowledged(k + 1);
      // Errors there are logged, not thrown.
      db.store.maintain(k % 2 === 0);
      if ("died" in db.files && db.files.died) return k + 1;
    }
    return this.steps.length;
  }

  /** Opens and reads all tables, which have what the `done` steps made. False if the process dies meanwhile. */
  isReadable(db: Opened, done: number): boolean {
    const found = unlessDead(() => this.check(db, done));
    if (found !== undefined) assert.equal(found, done);
    return found !== undefined;
  }

  /** The number of steps whose result is present: at most `done` + 1. For commits without sync. */
  find(db: Opened, done: number): number {
    const found = contentOf(db);
    for (let count = Math.min(done + 1, this.models.length - 1); count >= 0; count--) {
      if (isDeepStrictEqual(found, expectedOf(this.models[count]))) return count;
    }
    throw new Error(`what is there was never: ${JSON.stringify(Object.keys(found))}`);
  }

  /**
   * The number of steps whose result is present: `done`, or one more. `expiresLate`: expired rows may still be there, as
   * their drop is a change of its own, which may have failed.
   */
  check(db: Opened, done: number, expiresLate = false): number {
    const found = contentOf(db, expiresLate);
    for (const count of [done, done + 1]) {
      if (count < this.models.length && isDeepStrictEqual(found, expectedOf(this.models[count]))) return count;
    }
    assert.deepEqual(
      found,
      expectedOf(this.models[done]),
      `after ${done} steps, of which the last is ${this.steps[done - 1]?.title}`,
    );
    throw new Error("not reached");
  }
}

/** `detached`: the row counts of detached days. */
type Content = Record<string, { columns: string[]; rows: Value[][]; detached: number[]; options: string }>;

const optionsText = (keys: readonly number[] = [], ttlDays = 0) => `keys ${keys}, ttl ${ttlDays}`;

function countsOfDays(rows: readonly Record<number, Value>[], time = -1): number[] {
  const days = Map.groupBy(rows, (row) => Number((row[time] as bigint) / BigInt(DAY)));
  return [...days].sort(([a], [b]) => a - b).map(([, { length }]) => length);
}

function contentOf(db: Opened, expiresLate = false): Content {
  const tables = db.catalogue.tables().map((snapshot): [string, Content[string]] => {
    const { name, columns, dedupKeys, timestampId, ttl } = snapshot.schema;
    const options = optionsText(dedupKeys.filter((id) => id !== timestampId), ttl?.count);
    const all = db.rows(snapshot), time = columns.findIndex(({ id }) => id === timestampId);
    const rows = expiresLate && ttl !== undefined ? unexpired(all, time, ttl.count) : all;
    const detached = db.catalogue.table(name)!.detachedPartitions().map(({ rowCount }) => rowCount);
    return [name, { columns: columns.map((column) => `${column.name} ${column.type}`), rows, detached, options }];
  });
  const records = [...db.catalogue.access.records].sort();
  if (records.length > 0) {
    tables.push([ACCESS, { columns: ["key STRING", "text STRING"], rows: records, detached: [], options: "" }]);
  }
  return Object.fromEntries(tables.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function expectedOf(model: Model): Content {
  return Object.fromEntries(
    [...model].map(([name, { columns, rows, timestamp, detached = [], dedupKeys, ttlDays }]) =>
      [name, {
        columns: columns.map((column) => `${column.name} ${column.type}`),
        rows: rows.map((row) => columns.map(({ id }) => row[id])),
        options: name === ACCESS ? "" : optionsText(dedupKeys, ttlDays),
        detached: countsOfDays(detached, columns.find((column) => column.name === timestamp)?.id),
      }] as [string, Content[string]]
    ).sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

const COLUMNS = { sym: "SYMBOL", note: "VARCHAR", price: "DOUBLE", n: "LONG", ts: "TIMESTAMP" };
const DAY = 86_400_000_000;

export function someRows(random: Random, count: number, days: number): Record<number, Value>[] {
  return Array.from({ length: count }, () => ({
    0: random() < 0.1 ? null : `S${Math.floor(random() * 9)}`,
    1: random() < 0.1 ? null : "x".repeat(Math.floor(random() * 12)) + Math.floor(random() * 100),
    2: random() < 0.1 ? null : random(),
    3: BigInt(Math.floor(random() * 1000)),
    4: BigInt(Math.floor(random() * days * DAY)),
  }));
}

/** High column ids make pages of few segments, so that a small table has several pages. */
const WIDE_COLUMNS = { ...COLUMNS, ...Object.fromEntries(Array.from({ length: 85 }, (_, k) => [`c${k}`, "LONG"])) };
const NARROW = Array.from({ length: 84 }, (_, k) => 5 + k);

/** The record of a user with these grants. */
const alice = (grants: unknown[]) => JSON.stringify({ kind: "user", name: "alice", grants });
const onTable = (table: string, option = 0) => [["SELECT", option, table], ["INSERT", option, table]];

/** All kinds of commands, with checkpoints in between. */
export function script(seed: number): Step[] {
  const random = randomOf(seed);
  const rows = (count: number, days = 3) => someRows(random, count, days);
  // Few timestamps and symbols, so that keys repeat.
  const grid = (count: number) =>
    rows(count).map((row) => ({
      ...row,
      0: `S${Math.floor(random() * 2)}`,
      4: BigInt(Math.floor(random() * 6) * DAY / 2),
    }));
  const withoutNote = (all: Record<number, Value>[]) => all.map(({ 1: _, ...row }) => row);
  const twoColumns = (all: Record<number, Value>[]) => all.map(({ 3: n, 4: ts }) => ({ 3: n, 4: ts }));
  const everyDay = (days: number) => rows(days, 1).map((row, day) => ({ ...row, 4: BigInt(day * DAY) }));
  const plain = (count: number) => rows(count).map(({ 0: sym, 1: note, 3: n }) => ({ 0: note, 1: n, 2: sym }));
  return [
    create("a", COLUMNS, "ts"),
    append({ a: rows(20) }),
    create("pages", WIDE_COLUMNS, "ts"),
    dropColumns("pages", ...NARROW),
    append({ pages: twoColumns(everyDay(30)) }),
    create("b", { text: "STRING", n: "LONG", sym: "SYMBOL" }),
    changeAccess({ "principal/alice": alice(onTable("b")), "principal/bob": "bob", secret: "once" }),
    append({ a: rows(5), b: plain(7) }),
    append({ a: rows(10) }),
    checkpoint,
    append({ a: rows(30), b: plain(3), pages: twoColumns(rows(20, 24)) }),
    movePartitions("pages", "attached", "detached", [2, 9, 10, 17]),
    append({ pages: twoColumns(everyDay(32)).map((row) => ({ ...row, 89: 7n })) }),
    change("a", (k) => k % 5 === 1, 1, (k) => `changed ${k}`),
    change("a", (k) => k % 7 === 2, undefined, () => null),
    addColumn("a", "extra", "INT"),
    append({ a: rows(4).map((row, k) => ({ ...row, 5: k })) }),
    checkpoint,
    change("pages", (k) => k % 9 === 4, 1, (k) => `page ${k}`),
    movePartitions("pages", "attached", "nowhere", [0, 10, 31]),
    change("a", (k) => k % 11 === 0, 5, (k) => k),
    change("b", (k) => k % 2 === 0, 2, (k) => `sym ${k % 3}`),
    create("keys", COLUMNS, "ts", grid(12), { dedupKeys: [0] }),
    append({ keys: grid(20), b: plain(1) }),
    create("young", COLUMNS, "ts", rows(5, 2), { ttlDays: 2 }),
    append({ young: rows(12, 8) }),
    create("parts", COLUMNS, "ts", [...rows(30, 6), ...everyDay(6)]),
    movePartitions("parts", "attached", "detached", [1, 3]),
    append({ parts: [...rows(10, 6), ...everyDay(6)] }),
    movePartitions("parts", "attached", "nowhere", [0, 5]),
    load("e", COLUMNS, "ts", [rows(25, 1), rows(30, 4), rows(10, 1)]),
    loadInto("e", [rows(12, 5), rows(20, 9)]),
    loadInto("keys", [grid(6), grid(9)]),
    changeMany("keys", (k) => k % 3 !== 1, 0, (k) => `S${k % 5}`),
    changeMany("e", (k) => k % 5 < 3, 1, (k) => `many ${k}`),
    append({ keys: grid(15), young: rows(6, 12), e: rows(4) }),
    setDedup("keys", undefined),
    append({ keys: grid(5) }),
    setDedup("keys", [0]),
    dropColumns("parts", 1),
    dropColumns("a", 2),
    append({ a: rows(9).map(({ 2: _, ...row }) => row), b: plain(2) }),
    withAccess(rename("b", "c"), { "principal/alice": alice(onTable("c")) }),
    changeAccess({ "principal/bob": null, secret: "twice" }),
    create("d", COLUMNS, "ts", rows(40, 1)),
    loadInto("d", [rows(10, 1), rows(10, 2)]),
    loadInto("pages", [twoColumns(everyDay(40)).filter((_, day) => day !== 10), twoColumns(rows(8, 9))]),
    changeMany("pages", (k) => k % 3 > 0, 1, (k) => `pages ${k}`),
    changeMany("pages", (k) => k % 5 === 1 || (k > 12 && k < 31), undefined, () => null),
    append({ d: rows(8) }),
    changeMany("d", (k) => k % 2 === 0, 1, (k) => k % 8 === 0 ? null : `d ${k}`),
    changeMany("d", (k) => k < 12 || k % 6 === 5, undefined, () => null),
    convertColumn("d", 3, "VARCHAR"),
    drop("c"),
    setTtl("parts", undefined),
    movePartitions("parts", "attached", "nowhere", [1, 3]),
    checkpoint,
    movePartitions("parts", "detached", "attached", [3]),
    movePartitions("pages", "detached", "attached", [10]),
    change("pages", (k) => k % 4 === 0, undefined, () => null),
    setTtl("pages", 20),
    convertColumn("pages", 1, "SYMBOL"),
    change("parts", (k) => k % 4 === 1, 2, (k) => k / 2),
    movePartitions("parts", "attached", "detached", [2]),
    convertColumn("parts", 3, "SYMBOL"),
    truncate("a"),
    append({ a: rows(6).map(({ 2: _, ...row }) => row), d: rows(6), keys: grid(9) }),
    renameColumn("e", 1, "remark"),
    change("e", (k) => k % 3 === 0, undefined, () => null),
    drop("young"),
    movePartitions("parts", "detached", "nowhere", [1]),
    append({ parts: withoutNote(everyDay(8)) }),
    setTtl("parts", 3),
    withAccess(create("c", { n: "LONG" }, undefined, [], { creator: "alice" }), {
      "principal/alice": alice([...onTable("c", 1), ...allOf("table").slice(2).map((name) => [name, 1, "c"])]),
    }),
    changeAccess({ "principal/alice": alice(onTable("f")) }),
    append({ c: [{ 0: 1n }, { 0: null }] }),
    transaction({
      forks: ["d", "e", "keys"],
      undone: [
        change("d", () => true, undefined, () => null),
        create("gone", COLUMNS, "ts", rows(3)),
        append({ e: rows(8) }),
      ],
      steps: [
        change("d", (k) => k % 3 === 1, 0, (k) => `new ${k}`),
        append({ d: rows(12), e: rows(5), keys: grid(6) }),
        change("d", (k) => k % 4 === 2, undefined, () => null),
        change("e", (k) => k % 2 === 0, 1, (k) => `e ${k}`),
        create("f", COLUMNS, "ts", rows(15)),
        change("f", (k) => k % 5 === 0, 3, (k) => BigInt(k)),
        addColumn("e", "tag", "SYMBOL"),
        change("e", (k) => k % 3 === 0, 5, (k) => `tag ${k % 4}`),
        change("keys", (k) => k % 6 === 0, undefined, () => null),
      ],
    }),
    transaction({
      forks: ["d"],
      steps: [change("d", () => true, 1, () => "no"), drop("f"), truncate("e")],
      isRolledBack: true,
    }),
    checkpoint,
    transaction({
      forks: ["f", "d"],
      steps: [
        change("f", (k) => k % 2 === 0, 1, (k) => `f ${k}`),
        drop("c"),
        withAccess(rename("f", "c"), { "principal/alice": alice(onTable("c")) }),
        truncate("d"),
        append({ d: rows(7) }),
        change("d", (k) => k === 3, undefined, () => null),
        drop("keys"),
        create("keys", { n: "LONG" }, undefined, [{ 0: 4n }]),
      ],
    }),
    append({ c: rows(5), d: rows(4), e: rows(3) }),
  ];
}
