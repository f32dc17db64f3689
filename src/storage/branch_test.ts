/**
 * Runs random transactions beside one another and beside plain changes, and compares the tables with a model keyed by a
 * row id.
 */
import assert from "node:assert/strict";
import { FULL } from "../testing.ts";
import { FaultyFiles } from "./faulty-files.ts";
import type { CatalogueMirror } from "./catalogue.ts";
import type { Command } from "./commands.ts";
import type { Catalogue, Change } from "./contract.ts";
import { createHeap } from "./heap.ts";
import type { SharedPool } from "./pool.ts";
import { batchOf, newTable, readRows, rowIdsOf } from "./test-rows.ts";
import { openTestStore } from "./test-store.ts";
import type { TableStore } from "./writer.ts";

const RUNS = FULL ? 30 : 15, STEPS = 150;
/** Some transactions have a low memory limit, so that their changes are refused. */
const LIMITS_BYTES = [1 << 20, 1 << 20, 12_000];
const COLUMNS = { id: "LONG", sym: "SYMBOL", text: "VARCHAR", ts: "TIMESTAMP" };
const TYPES = { 0: "LONG", 1: "SYMBOL", 2: "VARCHAR", 3: "TIMESTAMP" };
const HOUR = 3_600_000_000n;

interface Row {
  text: string;
  sym: string;
  ts: bigint;
}
type Rows = Map<bigint, Row>;

/** A transaction's expected state of each table, and which of its initial rows it has changed. */
interface Open {
  id: number;
  limitBytes: number;
  catalogue: Catalogue;
  ordinal: number;
  state: Record<string, { start: Rows; rows: Rows; touched: Set<bigint> }>;
}

function randomOf(seed: number): () => number {
  let state = (seed * 2654435761) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

class Life {
  readonly heap = createHeap(32 << 20);
  readonly catalogue: CatalogueMirror;
  readonly pool: SharedPool;
  readonly store: TableStore;
  readonly committed: Record<string, Rows> = { a: new Map(), b: new Map() };
  readonly random: () => number;
  private nextId = 1n;
  private nextTransactionId = 1;
  private open: Open[] = [];
  conflicts = 0;
  rebased = 0;
  refused = 0;

  constructor(seed: number) {
    this.random = randomOf(seed);
    const files = new FaultyFiles({}, this.random);
    ({ store: this.store, catalogue: this.catalogue, pool: this.pool } = openTestStore(this.heap, files, {
      onDamage: (message) => assert.fail(message),
      checkpointLogBytes: 20_000,
      checkpointStepMs: 0,
      memoryBytes: 50_000,
      random: this.random,
      nowMicros: () => 2n ** 60n,
      evict: () => false,
    }));
    for (const name of ["a", "b"]) this.run({ kind: "createTable", table: newTable(name, COLUMNS, "ts") });
  }

  run(command: Command): { sqlState?: string } | undefined {
    const [{ error }] = this.store.execute([command]);
    return error as { sqlState?: string } | undefined;
  }

  done(command: Command): void {
    assert.equal(this.run(command), undefined, command.kind);
  }

  private any<T>(list: readonly T[]): T {
    return list[Math.floor(this.random() * list.length)];
  }

  private newRows(count: number): Rows {
    const rows: Rows = new Map();
    for (let k = 0; k < count; k++) {
      const id = this.nextId++;
      // Each row has its own time; some are late.
      const ts = (this.random() < 0.7 ? id : BigInt(Math.floor(this.random() * Number(id)))) * HOUR + id;
      rows.set(id, { text: `t${id}`, sym: `s${Math.floor(this.random() * 40)}`, ts });
    }
    return rows;
  }

  /** A random change of some rows of a table. Updates `rows` to the expected result. */
  private change(catalogue: Catalogue, name: string, rows: Rows): { change: Change; touched: bigint[] } | undefined {
    const table = catalogue.table(name)!;
    const tableId = table.schema.id;
    const kind = this.any(["append", "append", "update", "update", "delete"] as const);
    if (kind === "append") {
      const added = this.newRows(1 + Math.floor(this.random() * 12));
      for (const [id, row] of added) rows.set(id, row);
      const batch = batchOf(TYPES, [...added].map(([id, { sym, text, ts }]) => ({ 0: id, 1: sym, 2: text, 3: ts })));
      return { change: { kind, changes: [{ tableId, batches: [batch] }] }, touched: [] };
    }
    const ordered = inOrder(rows);
    const rate = this.random() * 0.3;
    const ordinals = ordered.map((_, ordinal) => ordinal).filter(() => this.random() < rate);
    if (ordinals.length === 0) return undefined;
    const rowIds = rowIdsOf(table, ordinals);
    const touched = ordinals.map((ordinal) => ordered[ordinal][0]);
    if (kind === "delete") {
      for (const id of touched) rows.delete(id);
      return { change: { kind, tableId, batches: [{ rowIds, columns: [] }] }, touched };
    }
    const text = `changed ${this.nextId++}`, sym = `new ${this.nextId % 50n}`;
    for (const id of touched) rows.set(id, { ...rows.get(id)!, text, sym });
    const { columns } = batchOf({ 1: "SYMBOL", 2: "VARCHAR" }, touched.map(() => ({ 1: sym, 2: text })));
    return { change: { kind, tableId, batches: [{ rowIds, columns }] }, touched };
  }

  step(): void {
    const { open } = this;
    const what = this.random();
    if (what < 0.08 && open.length < 4) {
      const id = this.nextTransactionId++;
      open.push({
        id,
        limitBytes: this.any(LIMITS_BYTES),
        catalogue: this.catalogue.branch(id),
        ordinal: 0,
        state: {},
      });
    } else if (what < 0.55 && open.length > 0) this.changeIn(this.any(open));
    else if (what < 0.7 && open.length > 0) this.end(this.any(open), this.random() < 0.75);
    else if (what < 0.75) this.done({ kind: "checkpoint" });
    else {
      const name = this.any(["a", "b"]);
      const made = this.change(this.catalogue, name, this.committed[name]);
      if (made !== undefined) this.done(made.change);
    }
    this.store.maintain(this.random() < 0.5);
    this.check();
  }

  private changeIn(transaction: Open): void {
    const name = this.any(["a", "b"]);
    const { id: transactionId, limitBytes, catalogue, state } = transaction;
    if (state[name] === undefined) {
      const tableId = catalogue.table(name)!.schema.id;
      this.done({ kind: "fork", transactionId, limitBytes, tableId });
      state[name] = {
        start: new Map(this.committed[name]),
        rows: new Map(this.committed[name]),
        touched: new Set(),
      };
    }
    const before = new Map(state[name].rows), ordinal = transaction.ordinal;
    const isTakenBack = this.random() < 0.2;
    const touchedBefore = new Set(state[name].touched);
    for (let k = 0; k < (isTakenBack ? 2 : 1); k++) {
      const known = new Map(state[name].rows);
      const made = this.change(catalogue, name, state[name].rows);
      if (made === undefined) continue;
      const changes = [{ ...made.change, ordinal: ++transaction.ordinal }];
      const error = this.run({ kind: "change", transactionId, limitBytes, changes });
      if (error === undefined) {
        for (const id of made.touched) if (state[name].start.has(id)) state[name].touched.add(id);
      } else {
        assert.equal(error.sqlState, "53200", String(error));
        this.refused++;
        state[name].rows = known;
      }
    }
    if (!isTakenBack) return;
    this.done({ kind: "rollbackTo", transactionId, ordinal });
    Object.assign(state[name], { rows: before, touched: touchedBefore });
  }

  private end(transaction: Open, commits: boolean): void {
    const { id: transactionId, limitBytes, state } = transaction;
    this.open = this.open.filter((other) => other !== transaction);
    if (!commits) return this.done({ kind: "rollback", transactionId });
    let isChanged = false, isConflict = false;
    for (const [name, { start, touched }] of Object.entries(state)) {
      const now = this.committed[name];
      for (const id of touched) if (now.get(id) !== start.get(id)) isConflict = true;
      if (now.size !== start.size || [...now].some(([id, row]) => start.get(id) !== row)) isChanged = true;
    }
    const error = this.run({ kind: "commit", transactionId, limitBytes, changes: [] });
    if (error !== undefined) {
      assert.equal(error.sqlState, "40001", String(error));
      assert.ok(isConflict, "only changes of the same rows are conflicts");
      this.conflicts++;
      return;
    }
    assert.ok(!isConflict, "nobody's change is lost");
    if (isChanged) this.rebased++;
    for (const [name, { start, rows }] of Object.entries(state)) {
      const now = this.committed[name];
      for (const id of start.keys()) if (!rows.has(id)) now.delete(id);
      for (const [id, row] of rows) if (start.get(id) !== row) now.set(id, row);
    }
  }

  check(): void {
    for (const name of ["a", "b"]) {
      this.compare(this.catalogue, name, this.committed[name]);
      for (const { catalogue, state } of this.open) {
        this.compare(catalogue, name, state[name]?.rows ?? this.committed[name]);
      }
    }
  }

  private compare(catalogue: Catalogue, name: string, rows: Rows): void {
    const expected = inOrder(rows).map(([id, { sym, text, ts }]) => [id, sym, text, ts]);
    assert.deepEqual(readRows(this.heap, this.pool, catalogue.table(name)!), expected);
  }

  /** Returns the memory that is in use after everything is dropped. */
  close(): number {
    for (const transaction of this.open.slice()) this.end(transaction, false);
    this.check();
    for (const { schema } of this.catalogue.tables()) this.done({ kind: "dropTable", tableId: schema.id });
    this.done({ kind: "createTable", table: newTable("c", { n: "LONG" }) });
    this.store.maintain();
    return this.store.memory.tailBytes + this.heap.usedBytes("dictionary") + this.heap.usedBytes("pages");
  }
}

function inOrder(rows: Rows): [bigint, Row][] {
  return [...rows].sort(([, a], [, b]) => (a.ts < b.ts ? -1 : 1));
}

Deno.test("concurrent transactions: commits are atomic, no row is lost, all memory is freed", () => {
  let conflicts = 0, rebased = 0, refused = 0;
  for (let seed = 1; seed <= RUNS; seed++) {
    const life = new Life(seed);
    try {
      for (let step = 0; step < STEPS; step++) life.step();
      assert.equal(life.close(), 0, "no memory of rows stays");
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
    conflicts += life.conflicts;
    rebased += life.rebased;
    refused += life.refused;
  }
  const told = `${conflicts} conflicts, ${rebased} committed on what others had changed, ${refused} changes refused`;
  assert.ok(conflicts > 0 && rebased > 0 && refused > 0, told);
});

Deno.test("readers are told that a transaction is over, however it ends", () => {
  const table = newTable("made", { n: "LONG" }), id = 7, limitBytes = 1 << 20;
  const create: Command = {
    kind: "commit",
    transactionId: id,
    limitBytes,
    changes: [{ kind: "createTable", table, ordinal: 1 }],
  };
  const refused: Command = { ...create, kind: "change" };
  const cases: [title: string, commands: Command[]][] = [
    ["a commit that creates a table", [create]],
    ["a commit without changes", [{ ...create, changes: [] }]],
    ["a rollback after a change that was refused", [refused, { kind: "rollback", transactionId: id }]],
  ];
  const ended: number[] = [];
  const files = new FaultyFiles({}, () => 0.5);
  const { store, catalogue } = openTestStore(createHeap(32 << 20), files);
  catalogue.onChange(({ branch }) => branch?.ended && ended.push(branch.transactionId));
  for (const [title, commands] of cases) {
    catalogue.branch(id);
    store.execute(commands);
    assert.deepEqual(ended.splice(0), [id], title);
  }
});
