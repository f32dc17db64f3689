/** A database under load, to be killed: writes `<client> <number>` to stdout after each acknowledged commit. */
import { openStorage } from "../../src/storage/mod.ts";
import { batchOf, newTable } from "../../src/storage/test-rows.ts";

const [root] = Deno.args;
const CLIENTS = 4, ROWS = 50;
const storage = await openStorage({
  root,
  heapSizeBytes: 64 << 20,
  unstoredSizeBytes: 1 << 20,
  checkpointLogBytes: 1 << 18,
  reserveBytes: 0,
});
for (const name of ["a", "b"]) {
  if (!storage.catalogue.table(name)) {
    await storage.writer.createTable(
      newTable(name, { client: "SYMBOL", number: "LONG", text: "VARCHAR", ts: "TIMESTAMP" }, "ts", "HOUR"),
    );
  }
}
const tableIds = ["a", "b"].map((name) => storage.catalogue.table(name)!.schema.id);
const types = { 0: "SYMBOL", 1: "LONG", 2: "VARCHAR", 3: "TIMESTAMP" };
const utf8 = new TextEncoder();
const start = Number(Deno.args[1]);

await Promise.all(Array.from({ length: CLIENTS }, async (_, client) => {
  for (let number = start;; number++) {
    // Commits go to both tables; some rows are late.
    const batch = () =>
      batchOf(
        types,
        Array.from(
          { length: ROWS },
          (_, k) => ({
            0: `c${client}`,
            1: BigInt(number),
            2: `text ${number}`,
            3: BigInt(number * 10_000_000 - (k % 7) * 600_000_000 + 10 ** 15),
          }),
        ),
      );
    await storage.writer.append(tableIds.map((tableId) => ({ tableId, batches: [batch()] })));
    Deno.stdout.writeSync(utf8.encode(`${client} ${number}\n`));
  }
}));
