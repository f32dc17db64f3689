import assert from "node:assert/strict";
import { SqlError } from "../errors.ts";
import { finerSamples } from "./finer-samples.ts";

const range = { fromMs: Date.UTC(2026, 0, 1), toMs: Date.UTC(2026, 0, 2), bucketsMax: 500 };
const RANGE = "from '2026-01-01T00:00:00.000Z' to '2026-01-02T00:00:00.000Z'";

Deno.test("finerSamples() narrows the only SAMPLE BY at any position", () => {
  const cases: [text: string, finer: string][] = [
    ["select ts, avg(x) from t sample by 1d", `select ts, avg(x) from t sample by 5m ${RANGE}`],
    [
      "select * from (select ts, 'sample by 1h', avg(x) from t SAMPLE BY 1h fill(prev) align to calendar) -- sample by 1h",
      `select * from (select ts, 'sample by 1h', avg(x) from t SAMPLE BY 5m ${RANGE} fill(prev) align to calendar) -- sample by 1h`,
    ],
    [
      "select ts, avg(x) from t sample by 10s order by ts",
      `select ts, avg(x) from t sample by 10s ${RANGE} order by ts`,
    ],
    [
      "with a as (select ts, max(x) m from t sample by d) select * from a",
      `with a as (select ts, max(x) m from t sample by 5m ${RANGE}) select * from a`,
    ],
  ];
  for (const [text, finer] of cases) assert.equal(finerSamples(text, range)?.text, finer);
});

Deno.test("finerSamples() returns undefined for statements that it cannot narrow", () => {
  const texts = [
    "select * from t",
    "select ts, avg(x) from t sample by 1h from '2026-01-01'",
    "select ts, avg(x) from t sample by 1h align to first observation",
    "select ts, avg(x) from t sample by 1h union all select ts, avg(x) from u sample by 1h",
    "declare @i := '1h' select ts, avg(x) from t sample by @i",
  ];
  for (const text of texts) assert.equal(finerSamples(text, range), undefined, text);
  assert.throws(() => finerSamples("select from where", range), SqlError);
});
