import assert from "node:assert/strict";
import { realFiles } from "./files.ts";
import { BLOCK_KIND, FLAG_LAST, Log, Scan } from "./wal.ts";

Deno.test("a log of two files is as long after a start as before, so that a checkpoint comes when it is due", () => {
  const directory = Deno.makeTempDirSync();
  const log = Log.create(realFiles, directory, 1, Math.random);
  const add = () => {
    const info = { tableId: 1, schemaVersion: 0, kind: BLOCK_KIND.append, flags: FLAG_LAST };
    log.add(info, [new Uint8Array(100)]);
    log.write();
  };
  for (let k = 0; k < 5; k++) add();
  // As a checkpoint does that then does not come to its end.
  log.roll();
  add();
  log.close();
  const again = Log.open(realFiles, directory, new Scan(realFiles, directory, 1), Math.random);
  assert.deepEqual([again.blockCount, again.sizeBytes], [6, log.sizeBytes]);
  again.close();
  Deno.removeSync(directory, { recursive: true });
});
