/** What others do between the parses of a text: the workers and the storage run in this thread, so that the order is certain. */
import assert from "node:assert/strict";
import { openStorage } from "../storage/mod.ts";
import { LineError } from "../errors.ts";
import type { Core } from "./core.ts";
import { Ingest } from "./ingest.ts";
import { type LineWork, LineWorker } from "./line-work.ts";

const ROWS = 1_000;

/** `between`: runs after the parse with this number, from 1. `commits`: gets the number of tables of each. */
async function withIngest(
  run: (
    ingest: Ingest,
    count: (table: string) => number | undefined,
    sizes: number[],
    commits: number[],
  ) => Promise<void>,
  between: (parse: number, ingest: Ingest) => Promise<void> = () => Promise.resolve(),
  { tableCountMax, memoryBytesMax = 64 << 20 }: { tableCountMax?: number; memoryBytesMax?: number } = {},
): Promise<void> {
  const root = await Deno.makeTempDir({ prefix: "sundial-ingest-" });
  const { catalogue, writer } = await openStorage({
    root: `${root}/db`,
    heapSizeBytes: 64 << 20,
    inProcess: true,
    tableCountMax,
  });
  const worker = new LineWorker(), sizes: number[] = [], commits: number[] = [];
  let parses = 0;
  const core = {
    options: {
      lineLimits: {
        sizeMax: 1 << 20,
        memoryBytesMax,
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
    append: (changes: Parameters<Core["append"]>[0]) => {
      commits.push(changes.length);
      return writer.append(changes);
    },
    schemaChanged: () => {},
  } as unknown as Core;
  const ingest: Ingest = new Ingest(core, () => 1_700_000_000_000_000n);
  try {
    await run(ingest, (table) => catalogue.table(table)?.rowCount, sizes, commits);
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

Deno.test("a line for which the database cannot have another table is the client's fault", () =>
  withIngest(
    async (ingest, count) => {
      await small(ingest, "one x=1i\n");
      await assert.rejects(small(ingest, "one x=2i\ntwo x=1i\n"), (error: LineError) => {
        assert.match(error.message, /at most 1 are allowed \(cairo.max.tables\)/);
        return error instanceof LineError && error.line === 2;
      });
      await small(ingest, "one x=3i\n");
      assert.deepEqual([count("one"), count("two")], [2, undefined]);
    },
    undefined,
    { tableCountMax: 1 },
  ));

Deno.test("a worker is told a schema once", async () => {
  await withIngest(async (ingest, count, sizes) => {
    for (let k = 0; k < 3; k++) await large(ingest, "t v=1i");
    assert.equal(count("t"), 3 * ROWS);
    assert.deepEqual(sizes, [0, 1, 0, 1, 0], "planned, then real, then known");
  });
});

/** Sends the texts as requests that arrive together. Returns the number of rows that each has added, or its error. */
function together(ingest: Ingest, texts: readonly string[], names: readonly string[] = []): Promise<unknown[]> {
  return Promise.all(texts.map(async (text, k) => {
    const bytes = new TextEncoder().encode(text);
    const body = {
      sizeBytes: bytes.length,
      async *[Symbol.asyncIterator]() {
        yield bytes;
      },
    };
    try {
      return (await ingest.writeLines(body, "n", { identity: { name: names[k] ?? "admin" } })).rows;
    } catch (error) {
      assert.ok(error instanceof LineError, String(error));
      return `line ${error.line}`;
    }
  }));
}

Deno.test("small texts of a user that arrive together are one commit", async () => {
  await withIngest(async (ingest, count, _, commits) => {
    await small(ingest, "t v=1i\nu v=1i\n");
    commits.length = 0;
    assert.deepEqual(await together(ingest, ["t v=2i\n", "t v=3i\nu v=2i", "u v=3i\n\nu v=4i\nu v=5i\n"]), [1, 2, 3]);
    assert.deepEqual(commits, [2]);
    assert.deepEqual([count("t"), count("u")], [3, 5]);
    await together(ingest, ["t v=6i\n", "t v=7i\n", "t v=8i\n"], ["ann", "bob", "ann"]);
    assert.deepEqual(commits, [2, 1, 1]);
    assert.equal(count("t"), 6);
  });
});

Deno.test("rows of texts that arrive together count for the memory of their commit: too many are committed text by text", async () => {
  const text = (k: number) => Array.from({ length: 100 }, (_, row) => `t v=${k}i ${100 * k + row}\n`).join("");
  const texts = Array.from({ length: 10 }, (_, k) => text(k + 1));
  for (const [memoryBytesMax, commitCount] of [[1 << 20, 1], [8_192, 10]]) {
    await withIngest(
      async (ingest, count, _, commits) => {
        await small(ingest, "t v=1i 1\n");
        commits.length = 0;
        assert.deepEqual(await together(ingest, texts), Array(10).fill(100));
        assert.equal(commits.length, commitCount, `with ${memoryBytesMax} bytes`);
        assert.equal(count("t"), 1_001);
      },
      undefined,
      { memoryBytesMax },
    );
  }
});

Deno.test("texts that arrive together do not depend on each other", async () => {
  await withIngest(async (ingest, count) => {
    await small(ingest, "t v=1i\n");
    const open = 't v=2i\nt s="ab', rest = '",v=3i\n';
    assert.deepEqual(await together(ingest, ["t v=4i\n", open, rest, "t v=5i\nt v=x\n", "t v=6i"]), [
      1,
      "line 2",
      "line 1",
      "line 2",
      1,
    ]);
    assert.equal(count("t"), 3);
    assert.deepEqual(await together(ingest, ["t v=7i\n", "new v=1i\n", "t w=8i\n", "t v=9i\n"]), [1, 1, 1, 1]);
    assert.deepEqual([count("t"), count("new")], [6, 1]);
  });
});
