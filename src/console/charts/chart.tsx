/** A result as a chart. Dragging zooms in, a double click shows all; a click in the legend hides a series. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Zone } from "../results/cells.ts";
import { drawCandles } from "./candles.ts";
import type { ChartData, ChartType, Shape } from "./shape.ts";

const COLOURS = [
  "#3b7dd8",
  "#d9822b",
  "#3f9c58",
  "#c5453f",
  "#8b5cc4",
  "#2aa1a8",
  "#b8893b",
  "#d0569a",
  "#6f7f2c",
  "#5f6b7a",
];
/** Room for the legend below the plot. */
const LEGEND_PX = 44;

interface ChartProps {
  data: ChartData;
  shape: Shape;
  type: ChartType;
  zone: Zone;
  isDark: boolean;
  /** Given the picture when it is there. */
  onReady(canvas: HTMLCanvasElement): void;
}

export function Chart({ data, shape, type, zone, isDark, onReady }: ChartProps) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = host.current!;
    const size = () => ({ width: element.clientWidth - 12, height: Math.max(120, element.clientHeight - LEGEND_PX) });
    const values = [data.x, ...data.series.map((one) => one.values)] as uPlot.AlignedData;
    const plot = new uPlot({ ...optionsOf(data, shape, type, zone), ...size() }, values, element);
    onReady(plot.ctx.canvas);
    const observer = new ResizeObserver(() => plot.setSize(size()));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [data, shape, type, zone, isDark]);
  return (
    <div
      class="chart"
      ref={host}
      role="img"
      aria-label={`Chart of ${data.series.map(({ name }) => name).join(", ")}`}
    />
  );
}

function optionsOf({ categories, series, x }: ChartData, { xKind }: Shape, type: ChartType, zone: Zone) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => resolved(style.getPropertyValue(name));
  const axis = {
    stroke: colour("--faint"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line") },
  };
  const isCandles = type === "candlestick";
  const xAxis: uPlot.Axis = categories === undefined ? axis : {
    ...axis,
    splits: categories.map((_, at) => at),
    values: (_plot, splits) => splits.map((at) => categories[at]?.slice(0, 16) ?? ""),
    rotate: categories.length > 12 ? -45 : 0,
    size: categories.length > 12 ? 80 : 40,
  };
  const options: Omit<uPlot.Options, "width" | "height"> = {
    ms: 1,
    tzDate: (at) => zone === "UTC" ? uPlot.tzDate(new Date(at), "Etc/UTC") : new Date(at),
    scales: {
      x: {
        time: xKind === "time",
        range: categories === undefined ? undefined : [-0.6, categories.length - 0.4],
        distr: 1,
      },
      y: type === "bar" ? { range: (_plot, low, high) => [Math.min(0, low), Math.max(0, high) * 1.05] } : {},
    },
    axes: [xAxis, { ...axis, size: 70 }],
    legend: { live: x.length < 200_000 },
    cursor: { drag: { x: true, y: false }, focus: { prox: 24 } },
    focus: { alpha: 0.35 },
    hooks: isCandles ? { draw: [(plot) => drawCandles(plot, { up: colour("--good"), down: colour("--fault") })] } : {},
    series: [
      { label: categories === undefined ? (xKind === "time" ? "time" : "x") : "", value: labelOf(categories) },
      ...series.map(({ name }, at) => seriesOf(name, COLOURS[at % COLOURS.length], type)),
    ],
  };
  return options;
}

function labelOf(categories: string[] | undefined): uPlot.Series.Value | undefined {
  return categories === undefined ? undefined : (_plot, at) => categories[at] ?? "";
}

function seriesOf(label: string, stroke: string, type: ChartType): uPlot.Series {
  switch (type) {
    case "line":
      return { label, stroke, width: 1.5, spanGaps: true };
    case "area":
      return { label, stroke, width: 1.5, fill: `${stroke}40`, spanGaps: true };
    case "bar":
      return {
        label,
        stroke,
        fill: `${stroke}b0`,
        paths: uPlot.paths.bars!({ size: [0.7, 60] }),
        points: { show: false },
      };
    case "scatter":
      return { label, stroke, paths: () => null, points: { show: true, size: 5, fill: stroke } };
    case "candlestick":
      return { label, stroke: "transparent", paths: () => null, points: { show: false } };
  }
}

/** The value of light-dark(…) for the theme that is shown: canvases do not know it. */
function resolved(colour: string): string {
  const probe = document.createElement("span");
  probe.style.color = colour;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
