/** A chart in the page's theme and time zone. The drawing library is loaded when the first chart is shown. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { zone } from "../results/view-settings.ts";
import { isDark } from "../store/theme.ts";
import type { ChartProps } from "./chart.tsx";

export function LazyChart(props: Omit<ChartProps, "zone" | "isDark">) {
  const [Chart, setChart] = useState<ComponentType<ChartProps>>();
  useEffect(() => {
    import("./chart.tsx").then((module) => setChart(() => module.Chart));
  }, []);
  return Chart === undefined ? <div class="chart" /> : <Chart {...props} zone={zone.value} isDark={isDark.value} />;
}
