import assert from "node:assert/strict";
import type { Value } from "../types/mod.ts";
import { createPool, openStorage, type Storage } from "./mod.ts";
import { batchOf, newTable, readRows } from "./test_rows.ts";

const TRADES = { sym: "SYMBOL", note: "VARCHAR", price: "DOUBLE", n: "LONG", ts: "TIMESTAMP" };
const TYPES = { 0: "SYMBOL", 1: "VARCHAR", 2: "DOUBLE", 3: "LONG", 4: "TIMESTAMP" };
const HOUR = 3_600_000_000n;

function open(root: string, inProcess = true): Promise<Storage> {
  return openStorage({ root, heapSizeBytes: 64 << 20, inProcess, log: (level, message) => console.log(level, message) });
}

function rowsAt(times: bigint[]): Record<number, Value>[] {
  return times.map((ts, k) => ({ 0: k % 3 === 0 ? null : `S${k % 5}`, 1: k % 4 === 0 ? null : `note ${ts}`, 2: k / 2, 3: BigInt(k), 4: ts }));
}

for (const inProcess of [true, false]) {
  Deno.test(`rows survive closing and opening (${inProcess ? "in process" : "worker"})`, async () => {
    const root = Deno.makeTempDirSync();
    let storage = await open(root, inProcess);
    const table = await storage.writer.createTable(newTable("Trades", TRADES, "ts"));
    const rows = rowsAt([1n, 2n, 30n * HOUR, 31n * HOUR]);
    const late = rowsAt([5n, 2n, 30n * HOUR]);
    await storage.writer.append([{ tableId: table.schema.id, batches: [batchOf(TYPES, rows)] }]);
    await storage.writer.append([{ tableId: table.schema.id, batches: [batchOf(TYPES, late)] }]);
    const expected = [rows[0], rows[1], late[1], late[0], rows[2], late[2], rows[3]].map((row) => Object.values(row));
    const check = () => {
      const pool = createPool(storage.heap);
      const snapshot = storage.catalogue.table("TRADES")!;
      assert.deepEqual(readRows(storage.heap, pool, snapshot), expected);
      assert.deepEqual(snapshot.partitions().map(({ name, rowCount }) => [name, rowCount]), [["1970-01-01", 4], ["1970-01-02", 3]]);
      assert.equal(snapshot.source([2], [[5n, 6n]]).rowCount, 4);
      pool.close();
    };
    check();
    await storage.writer.checkpoint();
    check();
    await storage.writer.close();
    storage = await open(root, inProcess);
    check();
    await assert.rejects(open(root), /in use/);
    await storage.writer.append([{ tableId: table.schema.id, batches: [batchOf(TYPES, rowsAt([31n * HOUR]))] }]);
    assert.equal(storage.catalogue.table("trades")!.rowCount, 8);
    await storage.writer.close();
    Deno.removeSync(root, { recursive: true });
  });
}
