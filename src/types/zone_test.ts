import assert from "node:assert/strict";
import { zoneOf } from "./zone.ts";

const cases: [name: string, isZone: boolean][] = [
  ["Europe/Berlin", true],
  ["America/Argentina/ComodRivadavia", true],
  ["utc", true],
  ["+02:30", true],
  ["Europe/Nowhere", false],
  ["", false],
  // Names are kept, so long ones are not even looked at.
  ["Europe/Berlin".padEnd(65), false],
  ["x".repeat(16_000_000), false],
];
for (const [name, isZone] of cases) {
  Deno.test(`zoneOf(): ${name.slice(0, 40)} ${isZone ? "is" : "is not"} a zone`, () => {
    assert.equal(zoneOf(name) !== undefined, isZone);
  });
}

for (const name of ["Europe/Berlin", "America/New_York"]) {
  Deno.test(`zoneOf(): ${name} has an offset at any time that a column can have`, () => {
    const zone = zoneOf(name)!;
    // Beyond the range of Date, the zone has the offset of the nearest day within. Its largest times are those of DATE.
    for (const magnitude of [8.64e12 - 1, 8.64e12, 8.64e12 + 1, 2 ** 63 / 1e6, 2 ** 63 / 1e3]) {
      for (const second of [Math.floor(magnitude), -Math.floor(magnitude)]) {
        assert.ok(Math.abs(zone.offsetAt(second)) < 86_400, `offset at ${second}: ${zone.offsetAt(second)}`);
        assert.ok(Number.isFinite(zone.toUtc(second)), `${second} in UTC: ${zone.toUtc(second)}`);
      }
    }
  });
}
