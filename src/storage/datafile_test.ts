import assert from "node:assert/strict";
import { DataFiles, OpenFiles } from "./datafile.ts";
import { PACKING } from "./encoding/encodings.ts";
import { type Files, realFiles } from "./files.ts";

Deno.test("DataFiles: those of many tables are not all open, and each is synced", async () => {
  const directory = await Deno.makeTempDir(), open = new Map<string, number>(), synced = new Set<string>();
  const files: Files = {
    ...realFiles,
    open(path, mode) {
      const file = realFiles.open(path, mode);
      open.set(path, (open.get(path) ?? 0) + 1);
      return Object.assign(Object.create(file), {
        sync: () => (file.sync(), synced.add(path)),
        close() {
          file.close();
          open.set(path, open.get(path)! - 1);
        },
      });
    },
  };
  const openCount = () => open.values().reduce((sum, count) => sum + count, 0);
  try {
    const opened = new OpenFiles(files);
    let id = 0;
    const tables = Array.from({ length: 300 }, () => new DataFiles(files, opened, directory, () => ++id, PACKING));
    const bytes = (table: number, round: number) => new Uint8Array(100).fill(table + round);
    const extents = [0, 1].map((round) => tables.map((data, table) => data.append([bytes(table, round)])));
    assert.equal(openCount(), 64);
    for (const [table, data] of tables.entries()) {
      data.sync();
      const into = new Uint8Array(100);
      for (const round of [0, 1]) {
        data.read(extents[round][table], into);
        assert.deepEqual(into, bytes(table, round));
      }
    }
    assert.equal(synced.size, 300);
    assert.equal(openCount(), 64);
    for (const data of tables) data.close();
    assert.equal(openCount(), 0);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
