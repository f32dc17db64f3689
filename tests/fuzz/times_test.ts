import assert from "node:assert/strict";
import { type HealthAnswer, healthTimes, timeFindings } from "./times.ts";

const run = (ms: number) => ({ sql: "select 1", start: 0, end: ms });
const answers = (ms: number, lateMs: number, count = 1_000): HealthAnswer[] =>
  Array(count).fill({ start: 0, ms, lateMs });
const QUICK = answers(1, 1);
const found = (runMs: number, health: readonly HealthAnswer[]) =>
  timeFindings([run(runMs)], health).map(({ what }) => what);

const cases: [title: string, runMs: number, health: readonly HealthAnswer[], finding: RegExp | undefined][] = [
  ["a statement within its time", 9_000, QUICK, undefined],
  ["a statement of 11 s", 11_000, QUICK, /^11000 ms$/],
  ["a statement of 11 s on a busy machine", 11_000, answers(30, 20), undefined],
  ["a statement of 25 s on a busy machine", 25_000, answers(30, 20), /^25000 ms$/],
  ["health of 900 ms", 100, answers(900, 0), undefined],
  ["health of 1.1 s", 100, answers(1_100, 0), /worst 1100 ms/],
  ["health of 1.1 s on a busy machine", 100, answers(1_100, 10), undefined],
  ["health of 2.1 s on a busy machine", 100, answers(2_100, 20), /worst 2100 ms/],
  ["a pause of 3 s in ten", 100, [...QUICK, ...answers(3_000, 0, 1)], /p99 \d+\.\d ms, worst 3000 ms/],
  ["no answer of health", 100, [...QUICK, ...answers(Infinity, 1, 1)], /worst Infinity/],
];
for (const [title, runMs, health, finding] of cases) {
  Deno.test(`timeFindings(): ${title}`, () => {
    const findings = found(runMs, health);
    assert.equal(findings.length, finding === undefined ? 0 : 1, String(findings));
    if (finding !== undefined) assert.match(findings[0], finding);
  });
}

Deno.test("healthTimes() counts a late answer by its time", () => {
  const { healthP99Ms, healthMostMs } = healthTimes([...QUICK, ...answers(1_000, 1, 1)]);
  assert.equal(healthMostMs, 1_000);
  assert.ok(healthP99Ms > 800, `${healthP99Ms} ms`);
});
