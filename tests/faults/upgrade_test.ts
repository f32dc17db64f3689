/** Roots of older formats survive a kill at each I/O point while they are opened, written and brought to the present format. */
import assert from "node:assert/strict";
import type { Command } from "../../src/storage/commands.ts";
import { FORMAT_VERSION } from "../../src/storage/format.ts";
import { Died, FaultyFiles } from "../../src/storage/faulty-files.ts";
import { batchOf } from "../../src/storage/test-rows.ts";
import { fromFileUrl } from "../paths.ts";
import { Opened, randomOf, testHeap } from "./harness.ts";

/** The files of a root, durable. */
function rootOf(version: number): FaultyFiles {
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
  return files;
}

/** Opens the root, adds a row, stores all and detaches a partition. Returns the number of acknowledged steps. */
function live(files: FaultyFiles): number {
  let done = 0;
  try {
    const db = new Opened(files, testHeap(), randomOf(1));
    const { id } = db.catalogue.table("trades")!.schema;
    const ts = 1_704_196_800_000_000n; // 2024-01-02T12:00
    const batches = [batchOf({ 0: "TIMESTAMP", 2: "DOUBLE" }, [{ 0: ts, 2: 4.5 }])];
    const start = 1_704_067_200_000_000n; // 2024-01-01
    const commands: Command[] = [
      { kind: "append", changes: [{ tableId: id, batches }] },
      { kind: "checkpoint" },
      { kind: "partitions", tableId: id, moves: [{ start, from: "attached", to: "detached" }] },
      { kind: "checkpoint" },
    ];
    for (const command of commands) {
      const [{ error }] = db.store.execute([command]);
      if (error instanceof Died) break;
      assert.equal(error, undefined);
      done++;
    }
  } catch (error) {
    if (!(error instanceof Died)) throw error;
  }
  return done;
}

/** Prices in the table after as many steps. */
const PRICES = [[1.5, 2.5, 3.5], [1.5, 2.5, 3.5, 4.5], [1.5, 2.5, 3.5, 4.5], [2.5, 3.5, 4.5], [2.5, 3.5, 4.5]];

for (let version = 0; version < FORMAT_VERSION; version++) {
  Deno.test(`a root of format ${version} is killed at each I/O point of its first changes`, () => {
    const seeded = rootOf(version).points;
    const whole = rootOf(version);
    assert.equal(live(whole), 4);
    for (let point = seeded + 1; point <= whole.points; point++) {
      const files = rootOf(version);
      files.faults.dieAt = point;
      const done = live(files);
      const db = new Opened(files.afterKill(), testHeap(), randomOf(1));
      const prices = db.rows(db.catalogue.table("trades")!).map((row) => row[2]);
      const expected = [PRICES[done], PRICES[Math.min(done + 1, 4)]].map((list) => list.join());
      assert.ok(expected.includes(prices.join()), `point ${point}, after ${done} steps: ${prices}`);
    }
  });
}
