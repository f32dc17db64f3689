import assert from "node:assert/strict";
import { RecentRecords } from "./recent.ts";

Deno.test("RecentRecords keeps the last 500, latest first, and truncates long messages", () => {
  const recent = new RecentRecords();
  const record = (message: string) => ({ timeMicros: 0, level: "ERROR", logger: "test", message }) as const;
  assert.deepEqual(recent.list(), []);
  for (let at = 0; at < 503; at++) recent.add(record(`${at}`));
  const kept = recent.list().map(({ message }) => message);
  assert.deepEqual([kept.length, kept[0], kept[1], kept[499]], [500, "502", "501", "3"]);
  recent.add(record("x".repeat(1e6)));
  assert.equal(recent.list()[0].message.length, 4001);
});
