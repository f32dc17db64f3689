import assert from "node:assert/strict";
import { randomOf, SEED } from "../../testing.ts";
import { addMonths, addYears, floorDivide } from "../../types/calendar.ts";
import { isFar, splitInstant, splitParts } from "../../types/format/time.ts";
import { NULL_I32, NULL_I64 } from "../../types/mod.ts";
import { zoneOf } from "../../types/zone.ts";
import type { BatchColumn, BatchOut, FunctionContext } from "./entry.ts";
import { writeNumber, writeSum } from "./instant-words.ts";
import { timeFunctions } from "./time.ts";
import { timeStepFunctions } from "./time-steps.ts";

const random = randomOf(SEED);
const anyLong = () => BigInt.asIntN(random(60) + 5, BigInt(random(2 ** 32)) << 32n | BigInt(random(2 ** 32)));
const values = new BigInt64Array(1), words = new Int32Array(values.buffer);

Deno.test("splitInstant() splits as BigInts are divided", () => {
  for (let round = 0; round < 20_000; round++) {
    values[0] = anyLong();
    for (const unitsASecond of [1e3, 1e6, 1e9]) {
      if (isFar(words[1], unitsASecond)) continue;
      splitInstant(words[0], words[1], unitsASecond);
      const second = floorDivide(values[0], BigInt(unitsASecond)), rest = values[0] - second * BigInt(unitsASecond);
      assert.deepEqual(
        { ...splitParts },
        { second: Number(second), rest: Number(rest) },
        `${values[0]} ${unitsASecond}`,
      );
    }
  }
});

Deno.test("writeSum() and writeNumber() write 64 bits", () => {
  for (let round = 0; round < 20_000; round++) {
    const value = anyLong(), more = Number(BigInt.asIntN(1 + random(53), anyLong()));
    values[0] = value;
    writeSum(words, 0, words[0], words[1], more);
    assert.equal(values[0], BigInt.asIntN(64, value + BigInt(more)), `${value} ${more}`);
    writeNumber(words, 0, more);
    assert.equal(values[0], BigInt(more));
  }
});

const ROWS = 2000;
const context = { at: 0, poll() {} } as unknown as FunctionContext;
const column = (values: BigInt64Array | Int32Array, type: string) => ({ values, type }) as unknown as BatchColumn;

/** Times of which some are of the same day, and nulls. */
function someTimes(): BigInt64Array {
  const times = new BigInt64Array(ROWS);
  for (let row = 0; row < ROWS; row++) {
    const kind = random(8);
    times[row] = kind === 0 ? NULL_I64 : kind < 3 ? anyLong() : BigInt(random(4e9)) * 1_000_000n + BigInt(random(1e6));
    if (kind > 5 && row > 0 && times[row - 1] !== NULL_I64) times[row] = times[row - 1] + 1n;
  }
  return times;
}

for (const [type, unitsADay] of [["TIMESTAMP", 86_400_000_000n], ["TIMESTAMP_NS", 86_400_000_000_000n]] as const) {
  for (const [name, add] of [["dateadd_months", addMonths], ["dateadd_years", addYears]] as const) {
    Deno.test(`${name} of ${type} adds as BigInts are added`, () => {
      const { batch } = timeStepFunctions.find((entry) => entry.name === name && entry.args[0].type === type)!;
      const times = someTimes(), counts = new Int32Array(ROWS), out = new BigInt64Array(ROWS);
      for (let row = 0; row < ROWS; row++) counts[row] = [3, 3, 3, -random(500), NULL_I32, random(2 ** 31)][random(6)];
      batch!([column(times, type), column(counts, "INT")], { values: out } as unknown as BatchOut, ROWS, context);
      for (let row = 0; row < ROWS; row++) {
        const isNull = times[row] === NULL_I64 || counts[row] === NULL_I32;
        const expected = isNull ? NULL_I64 : BigInt.asIntN(64, add(times[row], counts[row], unitsADay));
        assert.equal(out[row], expected, `${times[row]} ${counts[row]}`);
      }
    });
  }
}

for (
  const [type, unitsASecond] of [["DATE", 1000n], ["TIMESTAMP", 1_000_000n], ["TIMESTAMP_NS", 1_000_000_000n]] as const
) {
  Deno.test(`to_timezone() and to_utc() of ${type} move as BigInts are added`, () => {
    const times = someTimes(), zone = zoneOf("Europe/Berlin")!, scale = type === "DATE" ? 1000n : 1n;
    for (const name of ["to_timezone", "to_utc"]) {
      const { batch } = timeFunctions.find((entry) => entry.name === name)!, out = new BigInt64Array(ROWS);
      const zones = { isConstant: true, text: () => "Europe/Berlin" } as unknown as BatchColumn;
      batch!([column(times, type), zones], { values: out } as unknown as BatchOut, ROWS, context);
      for (let row = 0; row < ROWS; row++) {
        const second = floorDivide(times[row], unitsASecond), local = Number(second);
        const moved = name === "to_utc" ? zone.toUtc(local) : local + zone.offsetAt(local);
        const expected = (BigInt(moved) * unitsASecond + times[row] - second * unitsASecond) * scale;
        assert.equal(
          out[row],
          times[row] === NULL_I64 ? NULL_I64 : BigInt.asIntN(64, expected),
          `${name} ${times[row]}`,
        );
      }
    }
  });
}
