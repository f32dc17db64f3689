/** Current rates, latencies, memory, log and disk, and the running statements. */
import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { LazyChart } from "../charts/lazy-chart.tsx";
import type { Shape } from "../charts/shape.ts";
import { type Outcome, query } from "../server/client.ts";
import { isServerAway, returns } from "../store/connection.ts";
import { LIVE_CHARTS, type LiveChart, METRICS, NUMBERS, WINDOW_MS } from "./live-charts.ts";
import { repeat } from "./polled.ts";
import { type Reading, readingOf } from "./readings.ts";
import { Running } from "./running.tsx";
import { Unavailable } from "./unavailable.tsx";

const EVERY_MS = 2000;
const AFTER_ERROR_MS = 30_000;
const STATEMENT = `select name, label, le, value from server_metrics() where name in (${
  METRICS.map((name) => `'${name}'`).join(", ")
})`;

/** Kept while another page is shown. */
const readings = signal<readonly Reading[]>([]);

export function Overview() {
  const [outcome, setOutcome] = useState<Outcome>();
  useEffect(() =>
    repeat(async () => {
      const next = await query(STATEMENT), at = Date.now();
      if (next.rows !== undefined) {
        const kept = readings.value.filter((reading) => reading.at > at - WINDOW_MS);
        readings.value = [...kept, readingOf(at, next.rows.dataset)];
      }
      if (!isServerAway.value) setOutcome(next);
      return next.error === undefined ? EVERY_MS : AFTER_ERROR_MS;
    }), [returns.value]);
  return (
    <>
      {outcome?.rows === undefined ? <Unavailable what="Metrics" outcome={outcome} /> : (
        <>
          <Numbers />
          <div class="live-charts">
            {LIVE_CHARTS.map((chart) => (
              <section key={chart.title} class="card" aria-label={chart.title}>
                <h2>{chart.title}</h2>
                <Live chart={chart} />
              </section>
            ))}
          </div>
        </>
      )}
      <Running />
    </>
  );
}

function Numbers() {
  return (
    <dl class="numbers">
      {NUMBERS.map(({ name, textOf }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{textOf(readings.value)}</dd>
        </div>
      ))}
    </dl>
  );
}

const SHAPE: Shape = { x: 0, xKind: "time", y: [], best: "line" };

function Live({ chart }: { chart: LiveChart }) {
  const { value: all } = readings;
  const data = useMemo(() => chart.dataOf(all), [all]);
  const to = all.at(-1)?.at ?? 0;
  // In the first minute the range is shorter than the whole window.
  const from = Math.min(Math.max(all[0]?.at ?? 0, to - WINDOW_MS), to - 60_000);
  return (
    <LazyChart
      data={data}
      shape={SHAPE}
      type="line"
      range={[from, to]}
      unit={chart.unit}
      group="server"
      legendLines={2}
      showsGaps
    />
  );
}
