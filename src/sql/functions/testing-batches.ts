/** Calls batch functions over columns of any rows, for tests. */
import { batchColumn, batchOut, functionContext } from "../../engine/batch-calls.ts";
import { TextArena, Workspace } from "../../engine/columns.ts";
import { testContext } from "../../engine/testing.ts";
import { layoutOf } from "../../types/mod.ts";
import { randomOf, SEED } from "../../testing.ts";
import { createRegistry, FUNCTIONS } from "./mod.ts";

/** As in memory; bytes for texts and arrays, undefined for their NULL. */
export type Stored = number | bigint | Uint8Array | undefined;

const context = testContext(1 << 28, { functions: createRegistry() });
const space = Workspace.of(context, "test"), random = randomOf(SEED);

const classOf = (type: string) => type.endsWith("[]") ? "array" : ["STRING", "VARCHAR"].includes(type) ? "text" : type;

/** `constants`: of arguments that have the same value in each row, by index. */
export function called(
  name: string,
  types: readonly string[],
  args: readonly (readonly Stored[])[],
  returns: string,
  constants: Record<number, number | bigint | string> = {},
): Stored[] {
  const rowCount = args[0]!.length, arena = new TextArena(space);
  const { batch } = FUNCTIONS.find((entry) =>
    entry.name === name && (entry.args.at(-1)?.variadic || entry.args.length >= types.length) &&
    types.every((type, k) => {
      const accepted = (entry.args[k] ?? entry.args.at(-1))!.type;
      return accepted === type || accepted === classOf(type) || accepted === "any" ||
        accepted === "wide" && classOf(type) === "array";
    })
  )!;
  const columns = types.map((type, k) => {
    const address = space.allocate(8 * rowCount);
    const column = batchColumn(context, type, type, address, rowCount, constants[k], constants[k] !== undefined);
    args[k]!.forEach((value, row) => {
      if (layoutOf(type) !== "text") column.values[row] = value;
      else {
        // At any address.
        arena.reserve(1 + random(3));
        const [at, size] = value instanceof Uint8Array ? arena.encode(value) : [0, -1];
        column.values.set([at | 0, size], 2 * row);
      }
    });
    return column;
  });
  const address = space.allocate(8 * rowCount), out = batchOut(context, returns, address, rowCount, arena);
  batch!(columns, out, rowCount, functionContext(context, { function: `${name}()`, at: 0 }));
  const result = batchColumn(context, returns, returns, address, rowCount, undefined, false);
  const results = Array.from(
    { length: rowCount },
    (_, row) => layoutOf(returns) === "text" ? result.bytes(row)?.slice() : result.values[row],
  );
  arena.release();
  for (const each of [address, ...columns.map((column) => column.address)]) space.free(each);
  return results;
}
