import assert from "node:assert/strict";
import type { PartitionUnit } from "../sql/plan.ts";
import { partitionName, partitionOf, timeBefore } from "./partition.ts";

const UNITS: PartitionUnit[] = ["HOUR", "DAY", "WEEK", "MONTH", "YEAR"];

Deno.test("partitionName() names the hour, day, ISO week, month and year of a time", () => {
  const named = (text: string, unit: PartitionUnit) => {
    const us = BigInt(Date.parse(text)) * 1000n;
    return partitionName(partitionOf(us, unit, 1n).start, unit, 1n);
  };
  assert.deepEqual(UNITS.map((unit) => named("2024-12-30T05:59:59Z", unit)), [
    "2024-12-30T05",
    "2024-12-30",
    "2025-W01",
    "2024-12",
    "2024",
  ]);
  assert.equal(named("2021-01-03T23:00:00Z", "WEEK"), "2020-W53");
  assert.equal(named("1969-12-31T23:59:59Z", "MONTH"), "1969-12");
  for (let k = 0, time = Date.UTC(1960, 0, 1); k < 2000; k++, time += 86_400_000 * 13 + 1_234_567) {
    const text = new Date(time).toISOString();
    assert.equal(named(text, "HOUR"), text.slice(0, 13));
    assert.equal(named(text, "MONTH"), text.slice(0, 7));
    const { start, end } = partitionOf(BigInt(time) * 1000n, "MONTH", 1n);
    assert.equal(Number(start / 1000n), Date.UTC(new Date(time).getUTCFullYear(), new Date(time).getUTCMonth(), 1));
    assert.equal(Number(end / 1000n), Date.UTC(new Date(time).getUTCFullYear(), new Date(time).getUTCMonth() + 1, 1));
  }
});

Deno.test("partitions and their names cover all times of 64 bits, which are more than a Date has", () => {
  for (const time of [-(2n ** 63n) + 1n, -9_000_000_000_000_000_000n, 9_000_000_000_000_000_000n, 2n ** 63n - 1n]) {
    for (const unit of UNITS) {
      const { start, end } = partitionOf(time, unit, 1n);
      assert.ok(start <= time && time < end, `${time} ${unit}`);
      assert.match(partitionName(start, unit, 1n), /^-?2\d{5}(-W?\d\d(-\d\d(T\d\d)?)?)?$/);
    }
    assert.ok(timeBefore(time, { count: 1, unit: "MONTH" }, 1n) < time);
  }
  assert.equal(partitionName(partitionOf(2n ** 63n - 1n, "HOUR", 1n).start, "HOUR", 1n), "294247-01-10T04");
});
