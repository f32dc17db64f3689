/** Random files of all types and layouts, written by pyarrow and read back by read_parquet. */
import assert from "node:assert/strict";
import { startServer } from "../server.ts";
import { hasPyarrow, python } from "./python.ts";
import { SEED } from "../../src/testing.ts";

interface RandomFile {
  file: string;
  layout: Record<string, unknown>;
  rows: number;
  columns: { name: string; sql: string; values: unknown[] }[];
}

const FILES = Number(Deno.env.get("SUNDIAL_RANDOM_FILES") ?? 25);
const isThere = await hasPyarrow("random Parquet files");

Deno.test({
  name: "read_parquet() returns the values of random files",
  ignore: !isThere,
  fn: async () => {
    console.log(`SEED=${SEED}`);
    // Many row groups of many columns take up to a minute on a busy machine.
    await using server = await startServer({ env: { SVC_QUERY_TIMEOUT: "300s" } });
    const directory = `${server.root}/import`;
    await Deno.mkdir(directory, { recursive: true });
    const files: RandomFile[] = JSON.parse(await python("write_random.py", directory, String(SEED), String(FILES)));
    for (const { file, layout, rows, columns } of files) {
      const select = (list: string) => `select ${list} from read_parquet('${file}')`;
      const what = `${file}: ${rows} rows, ${JSON.stringify(layout)}`;
      const all = await server.exec(select(columns.map(({ sql }, i) => `${sql} c${i}`).join(", ")));
      assert.equal(all.error, undefined, `${what}: ${all.error}`);
      assert.equal(all.count, rows, what);
      columns.forEach(({ name, values }, i) => {
        all.dataset!.forEach((row, at) => {
          assert.ok(
            isSame(row[i], values[at]),
            `${name}, row ${at}: ${shown(row[i])}, not ${shown(values[at])}; ${what}`,
          );
        });
      });
      const counted = await server.exec(select("count()"));
      assert.deepEqual(counted.dataset, [[rows]], what);
    }
  },
});

/** FLOATs are printed with the shortest digits that identify them. */
function isSame(found: unknown, expected: unknown): boolean {
  if (Array.isArray(expected)) {
    return Array.isArray(found) && found.length === expected.length &&
      expected.every((element, i) => isSame(found[i], element));
  }
  if (typeof expected !== "number" || typeof found !== "number") return found === expected;
  return found === expected || Math.fround(found) === expected;
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? "nothing").slice(0, 200);
}
