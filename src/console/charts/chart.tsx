/** A result as a chart. Dragging zooms in, a double click shows all, and a click in the legend hides a series. Keys do so too. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Zone } from "../results/cells.ts";
import { drawCandles } from "./candles.ts";
import { drawHeat, HEAT_COLOURS, heatRange } from "./heat.ts";
import { listenForKeys, makeLegendButtons, type Zooming, zoomingOf } from "./keys.ts";
import type { ChartData, ChartType, Shape } from "./shape.ts";
import { type SvgColours, svgOf } from "./svg.ts";
import { tickTexts, timeText } from "./times.ts";

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
  "#7d8896",
  "#5560d6",
  "#a3533a",
  "#6b9e1f",
  "#b07fb8",
];
/** Series that have the colour of another one are dashed. */
const DASH = [6, 4];
const POWERS_OF_TWO = Array.from({ length: 60 }, (_, power) => 2 ** power);
/** Height of a series' name beside a heat map. */
const NAME_PX = 13;
/** Room below the plot for each line of the legend, and for its margin; above it for the colours of a heat map. */
const LEGEND_LINE_PX = 17, LEGEND_MARGIN_PX = 12, SCALE_PX = 24;
/** In the legend, about: a character, and a value with its marker. */
const CHARACTER_PX = 7, VALUE_PX = 80, TIME_PX = 150;

export interface Unit {
  textOf(value: number): string;
  /** Puts ticks at multiples of powers of two. */
  isBinary?: boolean;
}

/** A finished chart, for the page's buttons. */
export interface DrawnChart {
  canvas: HTMLCanvasElement;
  toSvg(): string;
  /** Undefined if the x axis has no range. */
  zooming?: Zooming;
}

export interface ChartProps {
  data: ChartData;
  shape: Shape;
  type: ChartType;
  zone: Zone;
  isDark: boolean;
  onReady?(drawn: DrawnChart): void;
  /** The ends of the x axis. Default: those of the data. */
  range?: readonly [number, number];
  /** Called when the user has selected a range of x, or all of it (undefined). */
  onZoom?(range: readonly [number, number] | undefined): void;
  /** Unit of the values. Default: plain numbers. */
  unit?: Unit;
  /** Charts of one group show the time under the cursor in all of them. */
  group?: string;
  /** Lines of the legend, of charts beside each other. Default: those that its texts need. */
  legendLines?: number;
  /** Draws gaps in lines at nulls. */
  showsGaps?: boolean;
}

export function Chart(props: ChartProps) {
  const { data, shape, type, zone, isDark, range } = props;
  const host = useRef<HTMLDivElement>(null);
  const onZoom = useRef(props.onZoom);
  onZoom.current = props.onZoom;
  const shown = useRef<{ plot: uPlot; data: ChartData }>(undefined);
  const names = JSON.stringify([data.series.map(({ name }) => name), data.categories]);
  useEffect(() => {
    const element = host.current!;
    const size = () => {
      const width = element.clientWidth - 12;
      return { width, height: Math.max(120, element.clientHeight - roomAround(props, width)) };
    };
    const plot = new uPlot({ ...optionsOf(props), ...size() }, alignedOf(data), element);
    shown.current = { plot, data };
    const zoomed: ChartProps["onZoom"] = (chosen) => onZoom.current?.(chosen);
    listenForZoom(plot, zoomed);
    // A live chart has the range that it is given.
    const hasRange = data.categories === undefined && (range === undefined || props.onZoom !== undefined);
    const zooming = hasRange ? zoomingOf(plot, zoomed) : undefined;
    const stopKeys = listenForKeys(element, plot, zooming);
    makeLegendButtons(plot);
    props.onReady?.({
      canvas: plot.ctx.canvas,
      toSvg: () => svgOf(plot, type, svgColours(), devicePixelRatio),
      zooming,
    });
    const observer = new ResizeObserver(() => element.clientWidth > 0 && plot.setSize(size()));
    observer.observe(element);
    return () => {
      stopKeys();
      observer.disconnect();
      plot.destroy();
    };
  }, [names, shape, type, zone, isDark]);
  // New values of the same series are drawn without a new plot, to keep the cursor and hidden series.
  useEffect(() => {
    const { plot, data: before } = shown.current!;
    if (before === data) return;
    shown.current = { plot, data };
    plot.setData(alignedOf(data), range === undefined);
    if (range !== undefined) plot.setScale("x", { min: range[0], max: range[1] });
  }, [data, range?.[0], range?.[1]]);
  return (
    <div
      class={type === "heat map" ? "chart heat" : "chart"}
      ref={host}
      role="figure"
      tabIndex={0}
      aria-label={`Chart of ${data.series.map(({ name }) => name).join(", ")}`}
    >
      {type === "heat map" && <HeatScale data={data} unit={props.unit} />}
    </div>
  );
}

/** The colours with the values at which they begin and end. */
function HeatScale({ data, unit }: Pick<ChartProps, "data" | "unit">) {
  const [low, high] = heatRange(data.series.map(({ values }) => values));
  const textOf = unit?.textOf ?? ((value: number) => (+value.toPrecision(6)).toLocaleString("en"));
  if (low > high) return null;
  return (
    <p class="scale">
      {textOf(low)}
      <span aria-hidden="true">{HEAT_COLOURS.map((background) => <i key={background} style={{ background }} />)}</span>
      {textOf(high)}
    </p>
  );
}

/** Pixels beside the plot, of which the legend may have two lines. */
function roomAround({ data: { series }, type, legendLines }: ChartProps, width: number): number {
  const legendPx = series.reduce((sum, { name }) => sum + CHARACTER_PX * name.length + VALUE_PX, TIME_PX);
  const lines = legendLines ?? (legendPx > width ? 2 : 1);
  return lines * LEGEND_LINE_PX + LEGEND_MARGIN_PX + (type === "heat map" ? SCALE_PX : 0);
}

/** The plot itself zooms immediately. The listener may provide better data for the range. */
function listenForZoom(plot: uPlot, onZoom: (range: readonly [number, number] | undefined) => void): void {
  plot.over.addEventListener("dblclick", () => onZoom(undefined));
  (plot.hooks.setSelect ??= []).push(({ select: { left, width } }) => {
    if (width > 1) onZoom([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
  });
}

const alignedOf = ({ x, series }: ChartData) => [x, ...series.map(({ values }) => values)] as uPlot.AlignedData;

function optionsOf({ data: { categories, series, x }, shape: { xKind }, type, zone, ...props }: ChartProps) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => resolved(style.getPropertyValue(name));
  const axis = {
    stroke: colour("--faint"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line") },
  };
  const isCandles = type === "candlestick", isHeat = type === "heat map";
  const { unit } = props;
  const timeAxis: uPlot.Axis = {
    ...axis,
    values: (_plot, ticks, _axis, _space, step) => tickTexts(ticks, step, zone),
  };
  const xAxis: uPlot.Axis = categories === undefined ? xKind === "time" ? timeAxis : axis : {
    ...axis,
    splits: categories.map((_, at) => at),
    values: (_plot, splits) => splits.map((at) => categories[at]?.slice(0, 16) ?? ""),
    rotate: categories.length > 12 ? -45 : 0,
    size: categories.length > 12 ? 80 : 40,
  };
  const heatAxis: uPlot.Axis = {
    ...axis,
    grid: { show: false },
    size: 110,
    splits: series.map((_, at) => at),
    values: (plot, splits) => {
      // Names that would cover each other are left out.
      const rowPx = plot.bbox.height / devicePixelRatio / Math.max(1, series.length), each = Math.ceil(NAME_PX / rowPx);
      return splits.map((at) => at % each === 0 ? series[at]?.name.slice(0, 16) ?? "" : "");
    },
  };
  const options: Omit<uPlot.Options, "width" | "height"> = {
    ms: 1,
    padding: [10, null, null, null],
    tzDate: (at) => zone === "UTC" ? uPlot.tzDate(new Date(at), "Etc/UTC") : new Date(at),
    scales: {
      x: {
        time: xKind === "time",
        range: categories === undefined ? undefined : [-0.6, categories.length - 0.4],
        ...props.range === undefined ? {} : { min: props.range[0], max: props.range[1] },
        distr: 1,
      },
      y: isHeat
        ? { range: [-0.6, series.length - 0.4] }
        : type === "bar" || props.showsGaps
        ? { range: (_plot, low, high) => [Math.min(0, low ?? 0), Math.max(0, high ?? 0) * 1.05 || 1] }
        : {},
    },
    axes: [
      xAxis,
      isHeat ? heatAxis : {
        ...axis,
        size: 70,
        ...unit && { values: (_plot, ticks) => ticks.map(unit.textOf) },
        ...unit?.isBinary && { incrs: POWERS_OF_TWO },
      },
    ],
    legend: { live: x.length < 200_000 },
    cursor: {
      drag: { x: props.range === undefined || props.onZoom !== undefined, y: false },
      focus: { prox: 24 },
      ...props.group !== undefined && { sync: groupOf(props.group) },
    },
    focus: { alpha: 0.35 },
    hooks: isHeat
      ? { draw: [drawHeat] }
      : isCandles
      ? { draw: [(plot) => drawCandles(plot, { up: colour("--good"), down: colour("--fault") })] }
      : {},
    series: [
      {
        label: categories === undefined ? (xKind === "time" ? "time" : "x") : "",
        value: labelOf(categories, xKind, zone),
      },
      ...series.map(({ name }, at) => ({
        ...seriesOf(name, COLOURS[at % COLOURS.length]!, type),
        ...at >= COLOURS.length && { dash: DASH },
        ...props.showsGaps && { spanGaps: false },
        ...unit && { value: (_plot: uPlot, value: number | null) => value === null ? "–" : unit.textOf(value) },
      })),
    ],
  };
  return options;
}

/** Synchronizes the cursor time of all charts in the group. Selections are not synchronized. */
function groupOf(key: string): uPlot.Cursor.Sync {
  return { key, scales: ["x", null], filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } };
}

function labelOf(categories: string[] | undefined, xKind: Shape["xKind"], zone: Zone): uPlot.Series.Value | undefined {
  if (categories !== undefined) return (_plot, at) => categories[at] ?? "";
  return xKind === "time" ? (_plot, at) => at === null ? "–" : timeText(at, zone) : undefined;
}

function seriesOf(label: string, stroke: string, type: ChartType): uPlot.Series {
  switch (type) {
    case "line":
      return { label, stroke, width: 1.5, spanGaps: true, points: { size: 4, fill: stroke } };
    case "area":
      return { label, stroke, width: 1.5, fill: `${stroke}40`, spanGaps: true, points: { size: 4, fill: stroke } };
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
    case "heat map":
      return { label, stroke: "transparent", paths: () => null, points: { show: false } };
  }
}

function svgColours(): SvgColours {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => resolved(style.getPropertyValue(name));
  return {
    paper: colour("--paper"),
    text: colour("--faint"),
    line: colour("--line"),
    up: colour("--good"),
    down: colour("--fault"),
  };
}

/** Resolves light-dark(…) for the current theme, because canvases do not support it. */
function resolved(colour: string): string {
  const probe = document.createElement("span");
  probe.style.color = colour;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
