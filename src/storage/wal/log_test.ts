import assert from "node:assert/strict";
import { realFiles } from "../files.ts";
import { BLOCK_KIND, FLAG_LAST } from "./format.ts";
import { Log } from "./log.ts";
import { Scan } from "./scan.ts";

Deno.test("a log of two files has the same size after a start, so that its checkpoint is made when due", () => {
  const directory = Deno.makeTempDirSync();
  const log = Log.create(realFiles, directory, 1, Math.random);
  const add = () => {
    const info = { tableId: 1, schemaVersion: 0, kind: BLOCK_KIND.append, flags: FLAG_LAST };
    log.add(info, [new Uint8Array(100)]);
    log.write();
  };
  for (let k = 0; k < 5; k++) add();
  // Like a checkpoint that does not complete.
  log.roll();
  add();
  log.close();
  const again = Log.open(realFiles, directory, new Scan(realFiles, directory, 1), Math.random);
  assert.deepEqual([again.blockCount, again.sizeBytes], [6, log.sizeBytes]);
  again.close();
  Deno.removeSync(directory, { recursive: true });
});
