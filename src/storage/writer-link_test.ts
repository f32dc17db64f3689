import assert from "node:assert/strict";
import { openStorage } from "./mod.ts";
import { newTable } from "./test-rows.ts";

Deno.test("more commands than the queue holds are all executed, in order, and answered", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  const storage = await openStorage({ root: `${root}/db`, heapSizeBytes: 256 << 20, commitMode: "nosync" });
  const { writer, catalogue } = storage;
  const { schema } = await writer.createTable(newTable("t", { a: "LONG", b: "VARCHAR" }));
  // Columns as they are: these commands are texts. Those of 40 KB go through the port.
  const appended = Array.from({ length: 600 }, (_, k) => {
    const heap = new Uint8Array(k % 7 === 0 ? 40_000 : 1_000).fill(97);
    const columns = [
      { columnId: 0, values: new Uint8Array(BigInt64Array.of(BigInt(k)).buffer) },
      { columnId: 1, values: new Uint8Array(Int32Array.of(0, heap.length).buffer), heap },
    ];
    return writer.append([{ tableId: schema.id, batches: [{ rowCount: 1, columns }] }]);
  });
  await Promise.all(appended);
  assert.equal(catalogue.tableById(schema.id)!.rowCount, 600);
  await writer.close();
  await Deno.remove(root, { recursive: true });
});

Deno.test("the publications of a start that the queue does not hold all arrive", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" }), path = `${root}/db`;
  const first = await openStorage({ root: path, heapSizeBytes: 64 << 20, commitMode: "nosync" });
  const columns = Object.fromEntries(Array.from({ length: 20 }, (_, k) => [`column_${k}`, "LONG"]));
  const created = Array.from({ length: 300 }, (_, k) => first.writer.createTable(newTable(`t${k}`, columns)));
  assert.equal((await Promise.all(created)).length, 300);
  await first.writer.close();
  const again = await openStorage({ root: path, heapSizeBytes: 64 << 20 });
  assert.equal(again.catalogue.tables().length, 300);
  await again.writer.close();
  await Deno.remove(root, { recursive: true });
});
