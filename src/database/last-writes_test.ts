import assert from "node:assert/strict";
import { TableClosedError } from "../errors.ts";
import { LastWrites } from "./last-writes.ts";

type Catalogue = ConstructorParameters<typeof LastWrites>[0];
type Listener = Parameters<Catalogue["onChange"]>[0];
type Change = Parameters<Listener>[0]["tables"][number];

Deno.test("LastWrites distinguishes writes from opening, from definitions and from checkpoints", () => {
  let listener: Listener | undefined, now = 0n;
  const closed = {
    schema: { id: 2 },
    lsn: 5n,
    get rowCount(): number {
      throw new TableClosedError(2);
    },
  };
  const tables = [{ schema: { id: 1 }, lsn: 5n, rowCount: 3 }, closed];
  const catalogue = { tables: () => tables, onChange: (one: Listener) => void (listener = one) };
  const writes = new LastWrites(catalogue as unknown as Catalogue, () => ++now);
  const parts = [{ start: 0, count: 0, refs: new Float64Array() }];
  const change = (tableId: number, lsn: bigint, more: Partial<Change> = {}) =>
    listener!({ version: 1, lsn: Number(lsn), tables: [{ tableId, lsn, ...more }] });
  assert.deepEqual([writes.of(1), writes.of(2)], [null, null]);
  change(1, 5n, { parts });
  change(1, 6n, {});
  change(2, 5n, { parts });
  assert.deepEqual([writes.of(1), writes.of(2)], [null, null]);
  change(1, 7n, { parts });
  change(2, 8n, { parts });
  change(3, 9n, { parts });
  assert.deepEqual([writes.of(1), writes.of(2), writes.of(3)], [1n, 2n, 3n]);
  change(1, 10n, { dropped: true });
  assert.equal(writes.of(1), null);
});
