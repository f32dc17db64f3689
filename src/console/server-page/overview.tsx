/** Current rates, latencies, memory, log and disk, and the running statements. */
import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ComponentType } from "preact";
import type { Chart } from "../charts/chart.tsx";
import { zone } from "../results/view-settings.ts";
import { type Outcome, query } from "../server/client.ts";
import { isServerAway, returns } from "../store/connection.ts";
import { isDark } from "../store/theme.ts";
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
  const [Drawn, setDrawn] = useState<ComponentType<Parameters<typeof Chart>[0]>>();
  useEffect(() => {
    import("../charts/chart.tsx").then((module) => setDrawn(() => module.Chart));
  }, []);
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
                {Drawn === undefined ? <div class="chart" /> : <Live chart={chart} Drawn={Drawn} />}
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

const SHAPE = { x: 0, xKind: "time", y: [], best: "line" } as const;

function Live({ chart, Drawn }: { chart: LiveChart; Drawn: ComponentType<Parameters<typeof Chart>[0]> }) {
  const { value: all } = readings;
  const data = useMemo(() => chart.dataOf(all), [all]);
  const to = all.at(-1)?.at ?? 0;
  // In the first minute the range is shorter than the whole window.
  const from = Math.min(Math.max(all[0]?.at ?? 0, to - WINDOW_MS), to - 60_000);
  return (
    <Drawn
      data={data}
      shape={SHAPE as unknown as Parameters<typeof Chart>[0]["shape"]}
      type="line"
      zone={zone.value}
      isDark={isDark.value}
      range={[from, to]}
      unit={chart.unit}
      group="server"
      legendLines={2}
      showsGaps
    />
  );
}
