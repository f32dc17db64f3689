/**
 * Reads files of other writers after truncation, bit flips and splicing: the result must be an error or the right
 * number of rows, in time.
 */
import assert from "node:assert/strict";
import { dirname } from "node:path";
import { SqlError } from "../../errors.ts";
import type { ParquetNode } from "../../sql/plan.ts";
import type { QueryContext } from "../contract.ts";
import { createParquet } from "../operators/parquet.ts";
import { randomFrom, testContext } from "../testing.ts";
import { parquetSchema } from "./file.ts";
import { SEED } from "../../testing.ts";

const DATA = new URL("../../../tests/conformance/data/", import.meta.url);
const FILES = [...Deno.readDirSync(DATA)].map(({ name }) => name).filter((name) =>
  /^(types|zoo|sample).*\.parquet$/.test(name)
)
  .sort();
/** Number of damaged files of each kind; nightly runs use more. */
const RUNS = Number(Deno.env.get("SUNDIAL_DAMAGED_FILES") ?? 12);
/** Limit for a read that normally takes milliseconds. */
const PATIENCE_MS = 20_000;

/**
 * Number of rows from the footer, and number of rows read: with all columns, or with those that can be read separately.
 */
function read(path: string, context: QueryContext): number {
  const { columns, rowCount } = parquetSchema(path, dirname(path), 3);
  const plan: ParquetNode = {
    node: "parquet",
    columns,
    fileColumns: columns.map((column) => column.name),
    path,
    root: dirname(path),
    at: 3,
    timestamp: -1,
    order: "none",
  };
  const operator = createParquet(plan, context);
  let rows = 0;
  try {
    for (let batch = operator.next(); batch !== undefined; batch = operator.next()) rows += batch.rowCount;
  } finally {
    operator.close();
  }
  assert.equal(rows, rowCount);
  return rows;
}

function footerStart(bytes: Uint8Array): number {
  return bytes.length - 8 - new DataView(bytes.buffer, bytes.byteOffset).getUint32(bytes.length - 8, true);
}

type Damage = [kind: string, make: (whole: Uint8Array, random: () => number) => [Uint8Array, touchesFooter: boolean]];

const DAMAGES: Damage[] = [
  ["cut", (whole, random) => [whole.slice(0, random() % whole.length), true]],
  ["a flipped bit among the pages", (whole, random) => {
    const bytes = whole.slice();
    bytes[4 + random() % (footerStart(whole) - 4)] ^= 1 << (random() % 8);
    return [bytes, false];
  }],
  ["a flipped bit in the footer", (whole, random) => {
    const bytes = whole.slice(), from = footerStart(whole);
    bytes[from + random() % (whole.length - from)] ^= 1 << (random() % 8);
    return [bytes, true];
  }],
  ["random bytes among the pages", (whole, random) => {
    const bytes = whole.slice(), end = footerStart(whole), from = 4 + random() % (end - 4);
    for (let at = from; at < Math.min(end, from + 1 + random() % 64); at++) bytes[at] = random();
    return [bytes, false];
  }],
  ["a piece taken out", (whole, random) => {
    const from = random() % whole.length, to = from + 1 + random() % 32;
    return [Uint8Array.from([...whole.subarray(0, from), ...whole.subarray(to)]), true];
  }],
  ["nothing but random bytes and the marks of a file", (_, random) => {
    const bytes = Uint8Array.from({ length: 64 + random() % 512 }, () => random());
    bytes.set([80, 65, 82, 49]);
    bytes.set([80, 65, 82, 49], bytes.length - 4);
    new DataView(bytes.buffer).setUint32(bytes.length - 8, random() % bytes.length, true);
    return [bytes, true];
  }],
];

for (const file of FILES) {
  Deno.test(`a damaged file is refused or gives the right number of rows: ${file}`, () => {
    const whole = Deno.readFileSync(new URL(file, DATA));
    const random = randomFrom(SEED), directory = Deno.makeTempDirSync();
    const context = testContext(1 << 28);
    try {
      let count = 0;
      const attempt = (bytes: Uint8Array, mayHaveRows?: number): string => {
        const path = `${directory}/${count++}.parquet`;
        Deno.writeFileSync(path, bytes);
        const start = performance.now();
        try {
          const rows = read(path, context);
          if (mayHaveRows !== undefined) assert.equal(rows, mayHaveRows);
          return "read";
        } catch (error) {
          assert.ok(error instanceof SqlError, error instanceof Error ? error.stack : String(error));
          assert.equal(error.position, 3);
          return error.message;
        } finally {
          assert.equal(context.memory.usedBytes, 0, "memory is given back");
          assert.ok(performance.now() - start < PATIENCE_MS);
          Deno.removeSync(path);
        }
      };
      // If a file has a column that cannot be read even undamaged, its rows are not compared.
      const rowCount = parquetSchema(new URL(file, DATA).pathname, DATA.pathname).rowCount;
      for (const [kind, make] of DAMAGES) {
        for (let run = 0; run < RUNS; run++) {
          const [bytes, touchesFooter] = make(whole, random);
          try {
            attempt(bytes, touchesFooter ? undefined : rowCount);
          } catch (error) {
            throw new Error(`${kind}, SEED=${SEED}, run ${run}`, { cause: error });
          }
        }
      }
    } finally {
      Deno.removeSync(directory, { recursive: true });
    }
  });
}
