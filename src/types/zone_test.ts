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
