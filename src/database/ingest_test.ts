/** What others do between the parses of a text: the workers and the storage run in this thread, so that the order is certain. */
import assert from "node:assert/strict";
import { openStorage } from "../storage/mod.ts";
import { LineError } from "../errors.ts";
import type { Core } from "./core.ts";
import { Ingest } from "./ingest.ts";
import { type LineWork, LineWorker } from "./line-work.ts";

const ROWS = 1_000;

/** `between`: runs after the parse with this number, from 1. */
async function withIngest(
  run: (ingest: Ingest, count: (table: string) => number | undefined, sizes: number[]) => Promise<void>,
  between: (parse: number, ingest: Ingest) => Promise<void>,
): Promise<void> {
  const root = await Deno.makeTempDir({ prefix: "sundial-ingest-" });
  const { catalogue, writer } = await openStorage({ root: `${root}/db`, heapSizeBytes: 64 << 20, inProcess: true });
  const worker = new LineWorker(), sizes: number[] = [];
  let parses = 0;
  const core = {
    options: {
      lineLimits: {
        sizeMax: 1 << 20,
        memoryBytesMax: 64 << 20,
        newTablesMax: 10,
        newColumnsMax: 100,
      },
      lineCreatesTables: true,
      lineCreatesColumns: true,
      linePartitionBy: "DAY",
      lineTypes: { float: "DOUBLE", integer: "LONG", decimal: "DECIMAL(18,3)" },
    },
    catalogue,
    writer,
    scheduler: {
      async task(_name: string, work: LineWork, body: Uint8Array) {
        sizes.push(work.schemas.length);
        const { value } = worker.run(body, work);
        await between(++parses, ingest);
        return value;
      },
    },
    views: { view: () => undefined },
    append: (changes: Parameters<Core["append"]>[0]) => writer.append(changes),
    schemaChanged: () => {},
  } as unknown as Core;
  const ingest: Ingest = new Ingest(core, () => 1_700_000_000_000_000n);
  try {
    await run(ingest, (table) => catalogue.table(table)?.rowCount, sizes);
  } finally {
    await writer.close();
    await Deno.remove(root, { recursive: true });
  }
}

const small = (ingest: Ingest, text: string) => ingest.takeLines(new TextEncoder().encode(text), "n");
const large = (ingest: Ingest, line: string) => small(ingest, `${line}\n`.repeat(ROWS));

for (const parse of [1, 2]) {
  for (const name of ["Made", "made", "Ma\u0308de"]) {
    Deno.test(`a table ${name} that another request makes after parse ${parse} gets the rows of both`, async () => {
      await withIngest(async (ingest, count) => {
        await large(ingest, `${name},s=x v=1.5,n=1i`);
        assert.equal(count(name), ROWS + 1);
      }, async (k, ingest) => {
        if (k === parse) await small(ingest, `${name} n=2i,other=t\n`);
      });
    });
  }
}

Deno.test("a column that another request makes with another type has the lines sent again", async () => {
  await withIngest(async (ingest, count) => {
    const isBusy = (error: unknown) => error instanceof LineError && error.code === "too busy";
    await assert.rejects(large(ingest, "t v=1i"), isBusy);
    assert.equal(count("t"), 1);
    await large(ingest, "t v=1i");
    assert.equal(count("t"), ROWS + 1);
  }, async (k, ingest) => {
    if (k === 2) await small(ingest, "t v=1.5\n");
  });
});

Deno.test("a worker is told a schema once", async () => {
  await withIngest(async (ingest, count, sizes) => {
    for (let k = 0; k < 3; k++) await large(ingest, "t v=1i");
    assert.equal(count("t"), 3 * ROWS);
    assert.deepEqual(sizes, [0, 1, 0, 1, 0], "planned, then real, then known");
  }, () => Promise.resolve());
});
