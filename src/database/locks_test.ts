import assert from "node:assert/strict";
import { TableLocks } from "./locks.ts";

Deno.test("TableLocks runs shared holders together and an exclusive holder alone, in order", async () => {
  const locks = new TableLocks();
  const log: string[] = [];
  const step = (name: string, ms: number) => async () => {
    log.push(`+${name}`);
    await new Promise((resolve) => setTimeout(resolve, ms));
    log.push(`-${name}`);
  };
  await Promise.all([
    locks.shared([1], step("a", 10)),
    locks.shared([1, 2], step("b", 20)),
    locks.exclusive(1, step("X", 5)),
    locks.shared([1], step("c", 5)),
    locks.shared([3], step("d", 1)),
    locks.exclusive(1, step("Y", 1)),
  ]);
  assert.deepEqual(log.filter((entry) => !entry.endsWith("d")), [
    "+a",
    "+b",
    "-a",
    "-b",
    "+X",
    "-X",
    "+c",
    "-c",
    "+Y",
    "-Y",
  ]);
  await assert.rejects(locks.exclusive(1, () => Promise.reject(new Error("no"))), /no/);
  await locks.shared([1], step("after", 0));
});
