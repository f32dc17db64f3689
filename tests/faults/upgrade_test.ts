/** Roots of older formats survive kills and power cuts while they are opened, written and brought to the present format. */
import assert from "node:assert/strict";
import { CorruptFileError } from "../../src/errors.ts";
import { type Faults, FaultyFiles } from "../../src/storage/faulty-files.ts";
import { FORMAT_VERSION } from "../../src/storage/format.ts";
import { isOld } from "../../src/storage/page.ts";
import type { Value } from "../../src/types/mod.ts";
import { fromFileUrl } from "../paths.ts";
import {
  addColumn,
  append,
  change,
  changeMany,
  checkpoint,
  History,
  loadInto,
  type Model,
  movePartitions,
  Opened,
  randomOf,
  setRecords,
  setTtl,
  testHeap,
  unlessDead,
} from "./harness.ts";

/** Deaths of each root, evenly spread; `all` for each I/O point. */
const POINTS = Deno.env.get("SUNDIAL_DEATHS") ?? "30";
const CUTS = Number(Deno.env.get("SUNDIAL_POWER_CUTS") ?? 40);

/** The files of a root, durable. */
function rootOf(version: number, faults: Faults = {}): FaultyFiles {
  const files = new FaultyFiles({}, randomOf(version));
  const copy = (from: string, to: string) => {
    files.makeDirectory(to);
    for (const { name, isDirectory } of Deno.readDirSync(from)) {
      if (isDirectory) copy(`${from}/${name}`, `${to}/${name}`);
      else {
        const file = files.open(`${to}/${name}`, "create");
        file.write([Deno.readFileSync(`${from}/${name}`)], 0);
        file.sync();
        file.close();
      }
    }
    files.syncDirectory(to);
  };
  copy(fromFileUrl(`roots/${version}/db`), "/db");
  files.syncDirectory("/");
  const { dieAt, ...others } = faults;
  Object.assign(files.faults, others, dieAt === undefined ? {} : { dieAt: files.points + dieAt });
  return files;
}

/** What the root has. `tests/upgrade_test.ts` compares it with what was written. */
function contentOf(version: number): Model {
  const db = open(rootOf(version), 0);
  const rowsOf = (name: string) => db.rows(db.catalogue.table(name)!);
  const model: Model = new Map();
  for (const { schema: { id: tableId, name, columns, timestampId } } of db.catalogue.tables()) {
    const asRows = (lists: Value[][]) => lists.map((row) => Object.fromEntries(row.map((v, k) => [columns[k].id, v])));
    const rows = rowsOf(name);
    const moves = db.catalogue.table(name)!.detachedPartitions().map(({ start }) => (
      { start, from: "detached", to: "attached" } as const
    ));
    if (moves.length > 0) {
      assert.deepEqual(db.store.execute([{ kind: "partitions", tableId, moves }]), [{ value: undefined }]);
    }
    const known = new Set(rows.map((row) => row.join()));
    model.set(name, {
      columns: columns.map(({ id, name, type }) => ({ id, name, type })),
      nextColumnId: columns.length,
      timestamp: columns.find(({ id }) => id === timestampId)?.name,
      rows: asRows(rows),
      detached: asRows(rowsOf(name).filter((row) => !known.has(row.join()))),
    });
  }
  const { records } = db.catalogue.access;
  if (records.size > 0) setRecords(model, Object.fromEntries(records));
  return model;
}

const HOUR = 3_600_000_000;
/** 2024-01-01, in days since 1970. */
const DAY = 19_723;

/** Late rows, changed and deleted rows, partitions that come and go, a time to live, and new columns. */
function conversion(version: number): History {
  const row = (day: number, hour: number, symbol: string) => (
    { 0: BigInt((DAY * 24 + day * 24 + hour) * HOUR), 1: symbol, 2: day + hour / 24, 3: `${day} ${hour}` }
  );
  const start = contentOf(version);
  const x = (value: number) => ({ 0: start.get("plain")!.columns[0].type === "LONG" ? BigInt(value) : value });
  const wasDetached = start.get("trades")!.detached!.length > 0;
  const days = (count: number, hour: number) =>
    Array.from({ length: count }, (_, day) => row(day, hour, `S${day % 3}`));
  return new History([
    append({ trades: [row(1, 10, "ETH"), row(0, 3, "new"), row(1, 2, "BTC")], plain: [x(6)] }),
    change("trades", (k) => k % 2 === 0, 3, (k) => `changed ${k}`),
    movePartitions("trades", "attached", "detached", [DAY]),
    append({ trades: days(12, 5) }),
    checkpoint,
    ...(wasDetached ? [movePartitions("trades", "detached", "attached", [DAY - 1])] : []),
    append({ trades: days(12, 4) }),
    change("plain", (k) => k === 2, undefined, () => null),
    addColumn("trades", "size", "LONG"),
    append({ trades: days(3, 23).map((each) => ({ ...each, 4: 7n })) }),
    movePartitions("trades", "attached", "nowhere", [DAY]),
    movePartitions("trades", "detached", "attached", [DAY]),
    checkpoint,
    loadInto("trades", [
      days(13, 7).map((each) => ({ ...each, 4: 8n })),
      days(2, 22).map((each) => ({ ...each, 4: null })),
    ]),
    changeMany("trades", (k) => k % 3 > 0, 3, (k) => `many ${k}`),
    setTtl("trades", 8),
    change("trades", (k) => k % 5 === 1, undefined, () => null),
    append({ trades: days(14, 6), plain: [x(7)] }),
    checkpoint,
  ], start);
}

/** Makes steps until the process dies. Returns the number of acknowledged ones. */
function live(files: FaultyFiles, history: History, seed: number): number {
  const db = unlessDead(() => open(files, seed));
  return db === undefined ? 0 : history.play(db);
}

function open(files: FaultyFiles, seed: number): Opened {
  return new Opened(files, testHeap(), randomOf(seed), seed % 2 === 0 ? {} : { checkpointLogBytes: 1000 });
}

for (let version = 0; version < FORMAT_VERSION; version++) {
  Deno.test(`a root of format ${version} is killed at I/O points (${POINTS}) of its first changes`, () => {
    const history = conversion(version);
    const seeded = rootOf(version).points;
    const whole = rootOf(version);
    assert.equal(live(whole, history, version), history.steps.length);
    const count = whole.points - seeded;
    const step = POINTS === "all" ? 1 : Math.max(1, Math.floor(count / Number(POINTS)));
    for (let dieAt = 1; dieAt <= count; dieAt += step) {
      const files = rootOf(version, { dieAt });
      const done = live(files, history, version);
      try {
        const db = open(files.afterKill(), version);
        const found = history.check(db, done);
        if (dieAt % (5 * step) === 1) assert.equal(history.play(db, found), history.steps.length);
      } catch (error) {
        throw new Error(`killed at I/O point ${dieAt} after ${done} steps`, { cause: error });
      }
    }
  });
}

Deno.test(`roots of older formats survive ${CUTS} power cuts at random, also during recovery`, () => {
  const histories = Array.from({ length: FORMAT_VERSION }, (_, version) => conversion(version));
  for (let seed = 1; seed <= CUTS; seed++) {
    const random = randomOf(seed), version = seed % FORMAT_VERSION, history = histories[version];
    let files = rootOf(version, { dieAt: 1 + Math.floor(random() * 400), shortWrites: seed % 3 === 0 });
    try {
      let done = live(files, history, seed);
      for (let round = 0; round < 3; round++) {
        files = random() < 0.3 ? files.afterKill() : files.afterPowerCut();
        const count = history.check(open(files.copy(), seed), done);
        files.faults.dieAt = files.points + 1 + Math.floor(random() * 150);
        const db = unlessDead(() => open(files, seed));
        // A process that dies before it has synced what it found has shown it to nobody. Manifests are synced when tables are opened.
        if (db !== undefined && (count === done || history.isReadable(db, count))) done = history.play(db, count);
      }
      history.check(open(files.afterPowerCut(), seed), done);
    } catch (error) {
      throw new Error(`seed ${seed}, format ${version}`, { cause: error });
    }
  }
});

for (let version = 0; version <= FORMAT_VERSION; version++) {
  Deno.test(`a root of format ${version} is stored anew when the server is idle, once`, () => {
    const rest = (db: Opened) => {
      for (let left = 1000; db.store.isBusy && left > 0; left--) db.store.maintain(true);
      assert.ok(!db.store.isBusy);
      return db.heap.counter("repackedSegments");
    };
    const history = new History([], contentOf(version));
    const files = rootOf(version);
    const db = open(files, version);
    const count = rest(db);
    if (version < 6) assert.ok(count > 0, "chunks were raw");
    assert.ok([...db.store.tables.values()].every(({ isPacked }) => isPacked));
    assert.ok(!partsOf(db).some(isOld));
    assert.equal(history.check(db, 0), 0);
    db.store.execute([{ kind: "close" }]);
    const again = open(files.afterKill(), version);
    assert.equal(rest(again), 0);
    assert.ok([...again.store.tables.values()].every(({ unread }) => unread !== undefined), "no table is opened");
    assert.equal(history.check(again, 0), 0);
  });

  Deno.test(`a root of format ${version} is killed at I/O points (${POINTS}) while it is stored anew, and ends so`, () => {
    const history = new History([], contentOf(version));
    const rest = (files: FaultyFiles) => {
      const db = unlessDead(() => open(files, version));
      for (let left = 1000; db?.store.isBusy && !files.died && left > 0; left--) db.store.maintain(true);
      return db;
    };
    const whole = rootOf(version), seeded = whole.points;
    rest(whole);
    const count = whole.points - seeded, step = POINTS === "all" ? 1 : Math.max(1, Math.floor(count / Number(POINTS)));
    for (let dieAt = 1; dieAt <= count; dieAt += step) {
      const files = rootOf(version, { dieAt });
      rest(files);
      const left = dieAt % 2 === 0 ? files.afterKill() : files.afterPowerCut();
      try {
        history.check(open(left.copy(), version), 0);
        const db = rest(left)!;
        assert.ok(!partsOf(db).some(isOld));
        history.check(open(left.afterKill(), version), 0);
      } catch (error) {
        throw new Error(`killed at I/O point ${dieAt}`, { cause: error });
      }
    }
  });
}

Deno.test("a damaged page of an earlier format stays as it is, and the others are converted", () => {
  const version = 8, files = rootOf(version), before = open(files.copy(), version);
  const nameOf = ({ schema: { name } }: { schema: { name: string } }) => name;
  const days = [...before.store.tables.values()].find((table) => nameOf(table) === "days")!;
  before.store.open(days);
  const pages = [...days.segments.pages()], { file, offset } = pages[0].extent!;
  const damaged = files.open(days.data.list.get(file)!.path, "write");
  damaged.write([new Uint8Array(16).fill(0x55)], offset + 16);
  damaged.close();
  const rest = (db: Opened) => {
    for (let left = 1000; db.store.isBusy && left > 0; left--) db.store.maintain(true);
    assert.ok(!db.store.isBusy);
    const old = [...db.store.tables.values()].filter(({ segments }) => segments.lists.some(isOld));
    assert.deepEqual(old.map(nameOf), ["days"]);
    assert.equal([...old[0].segments.pages()].filter(isOld).length, 1);
    return db;
  };
  rest(open(files, version));
  const again = rest(open(files.afterKill(), version));
  assert.throws(() => again.rows(again.catalogue.table("days")!), CorruptFileError);
  const others = [...again.store.tables.values()].filter((table) => nameOf(table) !== "days");
  assert.ok(others.every(({ unread }) => unread !== undefined), "only the damaged table is opened");
});

/** All lists and pages. */
function partsOf({ store }: Opened) {
  return [...store.tables.values()].flatMap(({ segments, detached }) =>
    [segments, ...detached.values()].flatMap(({ lists }) => lists.flatMap((list) => [list, ...list.pages]))
  );
}

for (let version = 0; version <= FORMAT_VERSION; version++) {
  Deno.test(`checkpoints of the tables of a root of format ${version} convert pages that no change touches`, () => {
    const history = new History([], contentOf(version)), files = rootOf(version), db = open(files, version);
    const parts = () => partsOf(db);
    for (const table of db.store.tables.values()) {
      db.store.open(table);
      table.changed = true;
    }
    if (version >= 5) assert.equal(parts().some(isOld), version < 9);
    const sums = () => db.catalogue.tables().map((table) => [table.partitions(), table.detachedPartitions()]);
    const before = sums();
    db.store.execute([{ kind: "checkpoint" }]);
    assert.ok(!parts().some(isOld));
    // Rows of the log may have been flushed.
    assert.deepEqual(
      sums().flat(2).map(({ diskSizeBytes: _, ...sums }) => sums),
      before.flat(2).map(({ diskSizeBytes: _, ...sums }) => sums),
    );
    assert.equal(history.check(db, 0), 0);
    assert.equal(history.check(open(files.afterKill(), version), 0), 0);
  });
}
