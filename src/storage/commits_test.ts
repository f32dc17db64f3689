/** The parts of the writer that need no tables on disk. */
import assert from "node:assert/strict";
import { type CommitParts, Commits } from "./commits.ts";
import { Expiry, type ExpiryParts } from "./expiry.ts";
import { FaultyFiles } from "./faulty-files.ts";
import { createHeap } from "./heap.ts";
import { Seal } from "./seal.ts";
import type { Table, TableState } from "./table.ts";
import { BLOCK_KIND, FLAG_LAST } from "./wal/format.ts";
import { Log } from "./wal/log.ts";
import { Scan } from "./wal/scan.ts";

const heap = createHeap(1 << 20);
const info = { kind: BLOCK_KIND.append, flags: FLAG_LAST, tableId: 1, schemaVersion: 0 };

function commitsOver(files: FaultyFiles) {
  files.makeDirectory("/log");
  files.syncDirectory("/");
  const logged: string[] = [];
  const seal = new Seal({ log: (_, message) => logged.push(message) });
  const published: unknown[] = [];
  const parts = {
    options: { commitMode: "sync", heap },
    seal,
    access: { savepoint: () => () => {} },
    publisher: { prepare() {}, settle() {}, touch: (table: unknown) => published.push(table), publish() {} },
    reserve: { use: <T>(action: () => T) => action() },
  };
  const commits = new Commits(Log.create(files, "/log", 1, () => 0.5), parts as unknown as CommitParts);
  const write = () => commits.write((log) => [log.add(info, [new Uint8Array(10)])]);
  const blocks = () => new Scan(files.afterPowerCut(), "/log", 1).blocks.map(({ lsn }) => lsn);
  return { commits, write, blocks, seal, logged, published };
}

Deno.test("a group of commits that cannot be written leaves nothing in the log, and its LSNs are used again", () => {
  const files = new FaultyFiles({}, () => 0.5);
  const { write, blocks, seal } = commitsOver(files);
  assert.deepEqual(write(), [1]);
  files.faults.capacityBytes = 0;
  assert.throws(write, { name: "DiskFullError" });
  delete files.faults.capacityBytes;
  assert.ok(!seal.isSet);
  assert.deepEqual(write(), [2]);
  assert.deepEqual(blocks(), [1, 2]);
});

Deno.test("a failed sync seals the database", () => {
  const files = new FaultyFiles({}, () => 0.5);
  const { write, seal, logged } = commitsOver(files);
  write();
  files.faults.failSyncAt = files.syncs + 1;
  assert.throws(write);
  assert.throws(() => seal.check(), /the database is read-only: the log could not be synced/);
  assert.equal(logged.length, 1);
});

Deno.test("a group that cannot be applied is taken back in the tables and in the log", () => {
  const { commits, write, blocks, published } = commitsOver(new FaultyFiles({}, () => 0.5));
  const table = {
    state: { lsn: 7 } as TableState,
    restore(state: TableState) {
      this.state = state;
    },
  };
  const tables = [table as unknown as Table];
  commits.apply(write(), tables, () => void (table.state = { ...table.state, lsn: 1 }));
  assert.deepEqual([table.state.lsn, published.length], [1, 1]);
  const fail = () => {
    table.state = { ...table.state, lsn: 2 };
    throw new Error("no");
  };
  assert.throws(() => commits.apply(write(), tables, fail), /no/);
  assert.deepEqual([table.state.lsn, published.length], [1, 1]);
  write();
  assert.deepEqual(blocks().filter((lsn) => lsn !== 3), [1, 4], "block 2 is left out, block 3 says so");
});

Deno.test("a drop of expired partitions that fails is tried again, and logged once", () => {
  const logged: string[] = [], removed: number[] = [];
  const table = (id: number) => ({ schema: { id, name: `t${id}`, ttl: {} }, expired: () => [{}] }) as unknown as Table;
  const tables = new Map([1, 2].map((id) => [id, table(id)]));
  const options = { nowMicros: () => 0n, log: (_: string, message: string) => logged.push(message) };
  let isBroken = true;
  const expiry = new Expiry({ tables, options, seal: { isSet: false } } as unknown as ExpiryParts, ({ schema }) => {
    if (schema.id === 1 && isBroken) throw new Error("the disk is full");
    removed.push(schema.id);
  });
  expiry.drop(tables.values());
  expiry.whenDue();
  assert.deepEqual(logged, ["expired partitions of table t1 could not be dropped: the disk is full"]);
  isBroken = false;
  expiry.whenDue();
  assert.deepEqual(removed, [2, 2, 1, 2]);
  expiry.whenDue();
  assert.equal(removed.length, 4, "the next check is in a minute");
});
