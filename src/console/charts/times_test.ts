import assert from "node:assert/strict";
import { tickTexts, timeText } from "./times.ts";

const T = Date.parse;

Deno.test("tickTexts() shows the date where it changes, and only as much of the time as the steps need", () => {
  const hours = [T("2026-01-01T22:00Z"), T("2026-01-01T23:00Z"), T("2026-01-02T00:00Z")];
  assert.deepEqual(tickTexts(hours, 3_600_000, "UTC"), ["22:00\n2026-01-01", "23:00", "00:00\n2026-01-02"]);
  const days = [T("2026-01-01"), T("2026-02-01")];
  assert.deepEqual(tickTexts(days, 86_400_000, "UTC"), ["01-01\n2026", "02-01"]);
  assert.deepEqual(tickTexts(days, 31 * 86_400_000, "UTC"), ["2026-01", "2026-02"]);
  assert.deepEqual(tickTexts([T("2026-01-01T00:00:07.250Z")], 250, "UTC"), ["00:00:07.250\n2026-01-01"]);
});

Deno.test("timeText() has milliseconds only if there are any", () => {
  assert.equal(timeText(T("2026-01-01T00:00:07.250Z"), "UTC"), "2026-01-01 00:00:07.250");
  assert.equal(timeText(T("2026-01-01T00:00:07Z"), "UTC"), "2026-01-01 00:00:07");
});
