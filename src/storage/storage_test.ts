import assert from "node:assert/strict";
import { CorruptFileError, TableClosedError } from "../errors.ts";
import type { Value } from "../types/mod.ts";
import { copyDatabase, createPool, openStorage, type Storage } from "./mod.ts";
import { batchOf, newTable, openTables, readRows, rowIdsOf } from "./test-rows.ts";

const TRADES = { sym: "SYMBOL", note: "VARCHAR", price: "DOUBLE", n: "LONG", ts: "TIMESTAMP" };
const TYPES = { 0: "SYMBOL", 1: "VARCHAR", 2: "DOUBLE", 3: "LONG", 4: "TIMESTAMP" };
const HOUR = 3_600_000_000n;

async function open(root: string, inProcess = true): Promise<Storage> {
  const storage = await openStorage({
    root,
    heapSizeBytes: 64 << 20,
    inProcess,
    log: (level, message) => console.log(level, message),
  });
  await openTables(storage);
  return storage;
}

function rowsAt(times: bigint[]): Record<number, Value>[] {
  return times.map((ts, k) => ({
    0: k % 3 === 0 ? null : `S${k % 5}`,
    1: k % 4 === 0 ? null : `note ${ts}`,
    2: k / 2,
    3: BigInt(k),
    4: ts,
  }));
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
      assert.deepEqual(snapshot.partitions().map(({ name, rowCount }) => [name, rowCount]), [["1970-01-01", 4], [
        "1970-01-02",
        3,
      ]]);
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

Deno.test("segments of wide tables have fewer rows, also after late rows", async () => {
  const root = Deno.makeTempDirSync();
  const storage = await openStorage({ root, heapSizeBytes: 512 << 20, inProcess: true });
  const names = Array.from({ length: 2_000 }, (_, k) => `c${k}`);
  const columns = { ts: "TIMESTAMP", ...Object.fromEntries(names.map((name) => [name, "LONG"])) };
  const { schema } = await storage.writer.createTable(newTable("wide", columns, "ts"));
  const append = (rowCount: number, first: bigint) => {
    const values = new Uint8Array(BigInt64Array.from({ length: rowCount }, (_, k) => first + 2n * BigInt(k)).buffer);
    const batch = { rowCount, columns: schema.columns.map(({ id }) => ({ columnId: id, values })) };
    return storage.writer.append([{ tableId: schema.id, batches: [batch] }]);
  };
  await append(3_000, 0n);
  await append(3_000, 1n);
  const { segments } = storage.catalogue.table("wide")!.source([0]);
  const rowCounts = [...segments].map(({ rowCount }) => rowCount);
  assert.equal(rowCounts.reduce((sum, count) => sum + count), 6_000);
  // 64 MiB of values.
  const rowsMax = Math.floor((64 << 20) / (8 * schema.columns.length));
  assert.ok(rowCounts.every((count) => count <= rowsMax), `${rowCounts} rows, at most ${rowsMax} expected`);
  await storage.writer.close();
  Deno.removeSync(root, { recursive: true });
});

Deno.test("a log of many small commits is kept short, and its rest is replayed in order", async () => {
  const root = Deno.makeTempDirSync();
  const options = { root: `${root}/one`, heapSizeBytes: 64 << 20, inProcess: true };
  const storage = await openStorage({ ...options, checkpointLogBlocks: 50 });
  const table = await storage.writer.createTable(newTable("Trades", TRADES, "ts"));
  // Batches of two rows, with equal and late timestamps.
  const rows = rowsAt(Array.from({ length: 400 }, (_, k) => BigInt(k - k % 7) * 1000n));
  for (let k = 0; k < rows.length; k += 2) {
    await storage.writer.append([{ tableId: table.schema.id, batches: [batchOf(TYPES, rows.slice(k, k + 2))] }]);
  }
  // Copies the state that a killed process would leave.
  await copyDatabase(options.root, `${root}/two`);
  const again = await openStorage({ ...options, root: `${root}/two` });
  await openTables(again);
  const blocks = Number(/(\d+) blocks of the log/.exec(again.report.join())?.[1]);
  assert.ok(blocks > 0 && blocks <= 52, `${blocks} blocks`);
  const read = ({ catalogue, heap }: Storage) => readRows(heap, createPool(heap), catalogue.table("trades")!);
  assert.deepEqual(read(again), read(storage));
  assert.equal(read(again).length, rows.length);
  await storage.writer.close();
  await again.writer.close();
  Deno.removeSync(root, { recursive: true });
});

Deno.test("large segments: late rows, updates and deletes keep order, values and statistics right", async () => {
  const root = Deno.makeTempDirSync();
  const options = {
    root,
    heapSizeBytes: 256 << 20,
    poolSizeBytes: 4 << 20,
    unstoredSizeBytes: 6 << 20,
    inProcess: true,
  };
  let storage = await openStorage(options);
  let seed = 5;
  const random = () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
  const columns = { n: "LONG", text: "VARCHAR", price: "DOUBLE", sym: "SYMBOL", ts: "TIMESTAMP" };
  const types = { 0: "LONG", 1: "VARCHAR", 2: "DOUBLE", 3: "SYMBOL", 4: "TIMESTAMP" };
  let next = 0n;
  const make = (times: bigint[]) =>
    times.map((ts): Record<number, Value> => ({
      0: next++,
      1: random() < 0.1 ? null : `text ${ts}`,
      2: random() < 0.1 ? null : random(),
      3: `S${next % 7n}`,
      4: ts,
    }));
  const SPAN = 30 * 3600 * 1e6;
  let model: Record<number, Value>[] = [];
  const add = async (...batches: Record<number, Value>[][]) => {
    await storage.writer.append([{ tableId, batches: batches.map((rows) => batchOf(types, rows)) }]);
    model = model.concat(...batches);
    model = model.map((row, k) => ({ row, k })).sort((a, b) =>
      Number((a.row[4] as bigint) - (b.row[4] as bigint)) || a.k - b.k
    ).map(({ row }) => row);
  };
  const check = () => {
    const pool = createPool(storage.heap);
    const snapshot = storage.catalogue.table("t")!;
    assert.deepEqual(
      readRows(storage.heap, pool, snapshot),
      model.map((row) => [row[0], row[1], row[2], row[3], row[4]]),
    );
    const source = snapshot.source([0, 2, 4]);
    let firstRow = 0;
    for (const { rowCount, chunks, timestampMin, timestampMax } of source.segments) {
      assert.ok(rowCount > 0 && rowCount <= 65_536);
      const rows = model.slice(firstRow, firstRow + rowCount);
      const longs = rows.map((row) => row[0] as bigint), times = rows.map((row) => row[4] as bigint);
      const prices = rows.map((row) => row[2] as number | null).filter((price) => price !== null);
      assert.deepEqual(chunks[0]!.stats, {
        nullCount: 0,
        min: longs.reduce((a, b) => (b < a ? b : a)),
        max: longs.reduce((a, b) => (b > a ? b : a)),
        sum: longs.reduce((a, b) => a + b),
      });
      assert.deepEqual(chunks[1]!.stats, {
        nullCount: rowCount - prices.length,
        min: prices.reduce((a, b) => Math.min(a, b)),
        max: prices.reduce((a, b) => Math.max(a, b)),
      });
      assert.deepEqual([timestampMin, timestampMax], [times[0], times.at(-1)]);
      firstRow += rowCount;
    }
    pool.close();
  };
  const { schema: { id: tableId } } = await storage.writer.createTable(newTable("t", columns, "ts"));
  await add(make(Array.from({ length: 90_000 }, (_, k) => BigInt(Math.floor((k * SPAN) / 90_000)))));
  check();
  for (let round = 0; round < 3; round++) {
    await add(make(Array.from({ length: 3000 }, () => BigInt(Math.floor(random() * SPAN)))), make([1n, 1n, 0n]));
    check();
    const snapshot = storage.catalogue.table("t")!;
    const unpin = storage.catalogue.pin();
    const ordinals = model.map((_, k) => k).filter((k) => k % 1000 === round);
    const rowIds = rowIdsOf(snapshot, ordinals);
    // An append in between does not matter, as long as it does not change the updated segments.
    const newest = make([BigInt(SPAN) + BigInt(round)]);
    await storage.writer.append([{ tableId, batches: [batchOf(types, newest)] }]);
    model.push(...newest);
    if (round < 2) {
      const { columns: changed } = batchOf(
        { 1: "VARCHAR", 3: "SYMBOL" },
        ordinals.map((ordinal) => ({ 1: `new ${ordinal}`, 3: null })),
      );
      await storage.writer.change({
        kind: "update",
        tableId,
        batches: [{ rowIds, columns: changed }],
      });
      for (const ordinal of ordinals) model[ordinal] = { ...model[ordinal], 1: `new ${ordinal}`, 3: null };
      await assert.rejects(storage.writer.change({ kind: "delete", tableId, batches: [{ rowIds, columns: [] }] }), {
        sqlState: "40001",
      });
    } else {
      await storage.writer.change({ kind: "delete", tableId, batches: [{ rowIds, columns: [] }] });
      const gone = new Set(ordinals);
      model = model.filter((_, k) => !gone.has(k));
    }
    unpin();
    check();
    if (round === 1) await storage.writer.checkpoint();
  }
  await storage.writer.close();
  storage = await openStorage(options);
  await openTables(storage);
  check();
  await storage.writer.close();
  Deno.removeSync(root, { recursive: true });
});

Deno.test("a batch with unacceptable values is refused as a whole", async () => {
  const root = Deno.makeTempDirSync();
  const storage = await open(root);
  const { schema: { id: tableId } } = await storage.writer.createTable(
    newTable("t", { ts: "TIMESTAMP", n: "INT" }, "ts"),
  );
  const appendRows = (types: Record<number, string>, rows: Record<number, Value>[]) =>
    storage.writer.append([{ tableId, batches: [batchOf(types, rows)] }]);
  await assert.rejects(appendRows({ 0: "TIMESTAMP", 1: "INT" }, [{ 0: 1n, 1: 1 }, { 0: null, 1: 1 }]), {
    name: "SqlError",
    position: 0,
  });
  await assert.rejects(appendRows({ 0: "TIMESTAMP", 1: "INT" }, [{ 0: -1n, 1: 1 }]), { name: "SqlError", position: 0 });
  await assert.rejects(appendRows({ 1: "INT" }, [{ 1: 1 }]), { name: "SqlError", position: 0 });
  await assert.rejects(storage.writer.createTable(newTable("T", { n: "INT" })), {
    name: "SqlError",
    sqlState: "42P07",
  });
  await assert.rejects(storage.writer.change({ kind: "dropTable", tableId: 77 }), {
    name: "SqlError",
    sqlState: "42P01",
  });
  assert.equal(storage.catalogue.table("t")!.rowCount, 0);
  await appendRows({ 0: "TIMESTAMP" }, [{ 0: 1n }]);
  assert.deepEqual(readRows(storage.heap, createPool(storage.heap), storage.catalogue.table("t")!), [[1n, null]]);
  await storage.writer.close();
  Deno.removeSync(root, { recursive: true });
});

Deno.test("tails that exceed the memory budget are flushed, and can still be appended to", async () => {
  const root = Deno.makeTempDirSync();
  let storage = await open(root);
  const ids: number[] = [];
  for (let k = 0; k < 90; k++) {
    const { schema } = await storage.writer.createTable(newTable(`t${k}`, { n: "LONG", ts: "TIMESTAMP" }, "ts"));
    ids.push(schema.id);
  }
  const ROWS = 15_000;
  const values = (from: number) => {
    const times = new BigInt64Array(ROWS);
    for (let k = 0; k < ROWS; k++) times[k] = BigInt(from + k);
    return new Uint8Array(times.buffer);
  };
  // 90 tables of 60,000 rows of two columns: 90 MB, and as much for copies in progress.
  for (let round = 0; round < 4; round++) {
    for (const tableId of ids) {
      const columns = [0, 1].map((columnId) => ({ columnId, values: values(round * ROWS) }));
      await storage.writer.append([{ tableId, batches: [{ rowCount: ROWS, columns }] }]);
    }
  }
  assert.ok(storage.heap.usedBytes("tail") < 16 << 20, `${storage.heap.usedBytes("tail")} bytes of tails`);
  const check = () => {
    const pool = createPool(storage.heap);
    for (const k of [0, 7, 59]) {
      const rows = readRows(storage.heap, pool, storage.catalogue.table(`t${k}`)!);
      assert.equal(rows.length, 4 * ROWS);
      assert.ok(rows.every(([n, ts], ordinal) => n === BigInt(ordinal) && ts === n));
    }
    pool.close();
  };
  check();
  // The same with everything in the log: a copy equals the state after a kill.
  const copy = Deno.makeTempDirSync();
  await copyDatabase(root, copy);
  await storage.writer.close();
  storage = await open(copy);
  assert.ok(storage.report.some((line) => line.includes("360 blocks of the log")), storage.report.join());
  check();
  await storage.writer.close();
  Deno.removeSync(root, { recursive: true });
  Deno.removeSync(copy, { recursive: true });
});

Deno.test("a start reads no table: each is opened on first use, and damage is reported then", async () => {
  const root = Deno.makeTempDirSync();
  let storage = await open(root);
  const types = { 0: "SYMBOL", 1: "TIMESTAMP" };
  const rows = (n: number) => [batchOf(types, [{ 0: `s${n}`, 1: BigInt(n) }])];
  const ids: number[] = [];
  for (const name of ["stored", "logged", "both", "damaged"]) {
    const { schema } = await storage.writer.createTable(newTable(name, { sym: "SYMBOL", ts: "TIMESTAMP" }, "ts"));
    ids.push(schema.id);
    if (name !== "logged") await storage.writer.append([{ tableId: schema.id, batches: rows(1) }]);
  }
  const [stored, logged, both, damaged] = ids;
  await storage.writer.checkpoint();
  await storage.writer.append([logged, both].map((tableId) => ({ tableId, batches: rows(2) })));
  const copy = Deno.makeTempDirSync();
  await copyDatabase(root, copy);
  await storage.writer.close();
  for (const slot of [0, 1]) {
    const path = `${copy}/t${damaged}/manifest.${slot}`;
    try {
      Deno.truncateSync(path, 30);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
  const found: string[] = [];
  storage = await openStorage({
    root: copy,
    heapSizeBytes: 64 << 20,
    inProcess: true,
    onDamage: (line) => found.push(line),
  });
  const { catalogue, writer } = storage;
  assert.match(storage.report.join(), /2 blocks of the log come on top of 2 tables/);
  assert.equal(storage.heap.usedBytes("dictionary"), 0, "no dictionary was read");
  for (const id of ids) {
    assert.ok(catalogue.tableById(id)!.schema.columns.length === 2 && catalogue.tableById(id)!.lsn > 0n);
    for (const read of ["rowCount", "timestampMax"] as const) {
      assert.throws(() => catalogue.tableById(id)![read], TableClosedError);
    }
    assert.throws(() => catalogue.tableById(id)!.source([0]), TableClosedError);
  }
  const read = (id: number) => readRows(storage.heap, createPool(storage.heap), catalogue.tableById(id)!);
  await writer.open(both);
  assert.deepEqual(read(both), [["s1", 1n], ["s2", 2n]]);
  assert.throws(() => read(stored), TableClosedError, "one does not open the others");
  // A change opens its table too.
  await writer.append([{ tableId: logged, batches: rows(3) }]);
  assert.deepEqual(read(logged), [["s2", 2n], ["s3", 3n]]);
  assert.deepEqual(found, []);
  await writer.open(damaged);
  assert.match(found.join(), /table damaged is unusable: .*manifest/);
  assert.throws(() => read(damaged), CorruptFileError);
  // A checkpoint does not open closed tables.
  await writer.checkpoint();
  assert.throws(() => read(stored), TableClosedError);
  await writer.close();
  storage = await open(copy);
  assert.deepEqual(
    storage.catalogue.tables().filter(({ schema }) => schema.id !== damaged).map(({ rowCount }) => rowCount),
    [1, 2, 2],
  );
  await storage.writer.close();
  for (const directory of [root, copy]) Deno.removeSync(directory, { recursive: true });
});

Deno.test("pinned memory is kept until the readers are done", async () => {
  const root = Deno.makeTempDirSync();
  const storage = await open(root);
  const types = { 0: "LONG", 1: "TIMESTAMP" };
  const { schema: { id: tableId } } = await storage.writer.createTable(
    newTable("t", { n: "LONG", ts: "TIMESTAMP" }, "ts"),
  );
  const rows = Array.from({ length: 2000 }, (_, k) => ({ 0: BigInt(k), 1: BigInt(k) }));
  await storage.writer.append([{ tableId, batches: [batchOf(types, rows)] }]);
  const pool = createPool(storage.heap);
  const snapshot = storage.catalogue.table("t")!;
  const unpin = storage.catalogue.pin();
  const before = readRows(storage.heap, pool, snapshot);
  const pinned = storage.heap.usedBytes("tail");
  for (let k = 0; k < 20; k++) {
    await storage.writer.append([{ tableId, batches: [batchOf(types, [{ 0: -1n, 1: BigInt(k) }])] }]);
  }
  await storage.writer.change({ kind: "truncate", tableId });
  assert.deepEqual(readRows(storage.heap, pool, snapshot), before);
  assert.ok(storage.heap.usedBytes("tail") >= pinned);
  unpin();
  await storage.writer.append([{ tableId, batches: [batchOf(types, rows.slice(0, 1))] }]);
  await storage.writer.checkpoint();
  assert.ok(storage.heap.usedBytes("tail") <= 4 * 4096);
  await storage.writer.change({ kind: "dropTable", tableId: tableId });
  await storage.writer.checkpoint();
  assert.equal(storage.heap.usedBytes("tail"), 0);
  assert.equal(storage.heap.usedBytes("dictionary"), 0);
  await storage.writer.close();
  Deno.removeSync(root, { recursive: true });
});

Deno.test("tables with keys keep the last row of each, and a time to live drops old partitions", async () => {
  const root = Deno.makeTempDirSync();
  let storage = await open(root);
  const types = { 0: "TIMESTAMP", 1: "SYMBOL", 2: "VARCHAR", 3: "LONG" };
  const table = {
    ...newTable("t", { ts: "TIMESTAMP", host: "SYMBOL", key: "VARCHAR", v: "LONG" }, "ts"),
    dedupKeys: [0, 1, 2],
    ttl: { count: 2, unit: "DAY" },
  };
  const { schema: { id: tableId } } = await storage.writer.createTable(table);
  let model: Value[][] = [];
  let seed = 3;
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
  const compare = (a: Value[], b: Value[]) => (String(a.slice(0, 3)) < String(b.slice(0, 3)) ? -1 : 1);
  const check = () => {
    const rows = readRows(storage.heap, createPool(storage.heap), storage.catalogue.table("t")!);
    assert.deepEqual(rows.toSorted(compare), model.toSorted(compare));
  };
  for (let round = 0; round < 30; round++) {
    const rows = Array.from({ length: 40 }, (): Record<number, Value> => ({
      0: BigInt(random(30)) * HOUR * 4n / 3n,
      1: random(3) === 0 ? null : `h${random(2)}`,
      2: random(3) === 0 ? null : ["", "k"][random(2)],
      3: BigInt(random(1000)),
    }));
    await storage.writer.append([{
      tableId,
      batches: [batchOf(types, rows.slice(0, 20)), batchOf(types, rows.slice(20))],
    }]);
    for (const row of rows.map((row) => Object.values(row))) {
      model = model.filter((other) => row.slice(0, 3).some((value, k) => value !== other[k]));
      model.push(row);
    }
    check();
    if (round === 20) await storage.writer.checkpoint();
  }
  await storage.writer.append([{ tableId, batches: [batchOf(types, [{ 0: 73n * HOUR, 1: null, 2: null, 3: 1n }])] }]);
  model = [...model.filter((row) => row[0] as bigint >= 24n * HOUR), [73n * HOUR, null, null, 1n]];
  check();
  await storage.writer.close();
  storage = await open(root);
  check();
  await storage.writer.close();
  Deno.removeSync(root, { recursive: true });
});

Deno.test("tables of older roots whose names have the same Unicode normalization open and keep their names", async () => {
  const root = Deno.makeTempDirSync();
  const names = ["caf\u00e9", "cafe\u0301", "a\u202eb"];
  let storage = await open(root);
  for (const name of names) await storage.writer.createTable(newTable(name, { n: "INT", [name]: "INT" }));
  const check = () => assert.deepEqual(names.map((name) => storage.catalogue.table(name)?.schema.name), names);
  check();
  await storage.writer.close();
  storage = await open(root);
  check();
  await storage.writer.change({ kind: "dropTable", tableId: storage.catalogue.table(names[1])!.schema.id });
  assert.equal(storage.catalogue.table(names[1])?.schema.name, names[0]);
  await storage.writer.close();
  Deno.removeSync(root, { recursive: true });
});
