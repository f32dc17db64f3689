/** A drawn chart as an SVG document, with the current contents, size and zoom of the plot. */
import type uPlot from "uplot";
import { edgesOf, HEAT_COLOURS, heatColours, heatRange } from "./heat.ts";
import type { ChartType } from "./shape.ts";

export interface SvgColours {
  paper: string;
  text: string;
  line: string;
  up: string;
  down: string;
}

const FONT_PX = 12, LEGEND_PX = 24;
const BAR_SHARE = 0.7, BAR_MAX_PX = 60, CANDLE_MAX_PX = 14;

type Values = readonly (number | null | undefined)[];

/** A series of the plot. */
interface Line {
  label: string;
  values: Values;
  isShown: boolean;
  stroke: string;
  /** The attribute of dashed lines. */
  dash: string;
}

/** The parts of a plot that are read. */
export type DrawnPlot = Pick<uPlot, "bbox" | "data" | "series" | "axes" | "valToPos" | "width" | "height" | "scales">;

export function svgOf(plot: DrawnPlot, type: ChartType, colours: SvgColours, pixelRatio: number): string {
  const { width, height, bbox } = plot;
  const left = bbox.left / pixelRatio, top = bbox.top / pixelRatio;
  const plotWidth = bbox.width / pixelRatio, plotHeight = bbox.height / pixelRatio;
  const xOf = (value: number) => left + plot.valToPos(value, "x"),
    yOf = (value: number) => top + plot.valToPos(value, "y");
  const bottom = top + plotHeight;
  const x = plot.data[0] as readonly number[];
  const lines = plot.series.slice(1).map((series, index): Line => ({
    label: String(series.label),
    values: plot.data[index + 1] as Values,
    isShown: series.show !== false,
    stroke: strokeOf(series),
    dash: dashOf(series),
  }));
  const marks: string[] = [];
  const barPx = Math.max(1, Math.min(BAR_MAX_PX, BAR_SHARE * plotWidth / Math.max(1, x.length)));
  const baseline = Math.min(bottom, Math.max(top, yOf(0)));
  switch (type) {
    case "candlestick":
      marks.push(...candles(x, lines, xOf, yOf, Math.min(barPx, CANDLE_MAX_PX), colours));
      break;
    case "heat map":
      marks.push(...cells(x, lines, xOf, yOf));
      break;
    default:
      for (const { values, isShown, stroke, dash } of lines) {
        if (!isShown) continue;
        const points = pointsOf(x, values, xOf, yOf), first = points[0], last = points.at(-1);
        if (type === "bar") {
          for (const [at, y] of points) {
            marks.push(rect(at - barPx / 2, Math.min(y, baseline), barPx, Math.abs(y - baseline), stroke));
          }
        } else if (type === "scatter") {
          for (const [at, y] of points) marks.push(`<circle cx="${n(at)}" cy="${n(y)}" r="2.5" fill="${stroke}"/>`);
        } else if (first !== undefined && last !== undefined) {
          const path = points.map(([at, y]) => `${n(at)} ${n(y)}`).join("L");
          if (type === "area") {
            const area = `M${n(first[0])} ${n(baseline)}L${path}L${n(last[0])} ${n(baseline)}Z`;
            marks.push(`<path d="${area}" fill="${stroke}" fill-opacity="0.25"/>`);
          }
          marks.push(`<path d="M${path}" fill="none" stroke="${stroke}" stroke-width="1.5"${dash}/>`);
        }
      }
  }
  const legend = type === "heat map"
    ? scale(lines, left, height + LEGEND_PX / 2, colours.text)
    : lines.map(({ label, stroke }, index) => {
      const at = left + index * Math.max(90, plotWidth / lines.length);
      const y = height + LEGEND_PX / 2;
      const colour = type === "candlestick" ? colours.text : stroke;
      return rect(at, y - 5, 10, 10, colour) + text(at + 15, y + 4, label, "start", colours.text);
    });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${n(width)}" height="${n(height + LEGEND_PX)}" ` +
    `font-family="system-ui, sans-serif" font-size="${FONT_PX}">`,
    rect(0, 0, width, height + LEGEND_PX, colours.paper),
    `<clipPath id="plot"><path d="M${n(left)} ${n(top)}h${n(plotWidth)}v${n(plotHeight)}h${
      n(-plotWidth)
    }Z"/></clipPath>`,
    ...ticks(plot, colours, { left, top, right: left + plotWidth, bottom }),
    `<g clip-path="url(#plot)">`,
    ...marks,
    "</g>",
    ...legend,
    "</svg>",
  ].join("\n");
}

function pointsOf(
  x: readonly number[],
  values: Values,
  xOf: (value: number) => number,
  yOf: (value: number) => number,
): [number, number][] {
  return x.flatMap((at, index) => {
    const value = values[index];
    return value == null ? [] : [[xOf(at), yOf(value)] as [number, number]];
  });
}

function candles(
  x: readonly number[],
  [open, high, low, close]: readonly Line[],
  xOf: (value: number) => number,
  yOf: (value: number) => number,
  widthPx: number,
  { up, down }: SvgColours,
): string[] {
  return x.flatMap((at, index) => {
    const from = open?.values[index], most = high?.values[index], least = low?.values[index], to = close?.values[index];
    if (from == null || most == null || least == null || to == null) return [];
    const colour = to >= from ? up : down, center = xOf(at), top = yOf(Math.max(from, to));
    return [
      rect(center - 0.5, yOf(most), 1, yOf(least) - yOf(most), colour),
      rect(center - widthPx / 2, top, widthPx, Math.max(1, yOf(Math.min(from, to)) - top), colour),
    ];
  });
}

function cells(
  x: readonly number[],
  lines: readonly Line[],
  xOf: (value: number) => number,
  yOf: (value: number) => number,
): string[] {
  const colourOf = heatColours(lines.map(valuesOf));
  const edges = edgesOf(x, xOf);
  return lines.flatMap(({ values, isShown }, line) =>
    edges.flatMap(([left, right], at) => {
      const value = values[at];
      if (value == null || !isShown) return [];
      const top = yOf(line + 0.46);
      return [rect(left, top, right - left, yOf(line - 0.46) - top, colourOf(value))];
    })
  );
}

const valuesOf = ({ values }: Line) => values as (number | null)[];

/** The colours of a heat map between its smallest and its largest value. */
function scale(lines: readonly Line[], left: number, middle: number, colour: string): string[] {
  const [low, high] = heatRange(lines.map(valuesOf));
  if (low > high) return [];
  const begin = left + 80, end = begin + HEAT_COLOURS.length * 18;
  return [
    text(begin - 6, middle + 4, String(+low.toPrecision(6)), "end", colour),
    ...HEAT_COLOURS.map((fill, at) => rect(begin + at * 18, middle - 5, 18, 10, fill)),
    text(end + 6, middle + 4, String(+high.toPrecision(6)), "start", colour),
  ];
}

/** The ticks that the plot has chosen, from fields that its types omit. */
function ticks(
  { axes, valToPos }: DrawnPlot,
  { text: colour, line }: SvgColours,
  { left, top, right, bottom }: { left: number; top: number; right: number; bottom: number },
): string[] {
  return axes.flatMap((axis, index) => {
    const { _splits = [], _values = [] } = axis as { _splits?: number[]; _values?: unknown[] };
    return _splits.flatMap((split, at) => {
      const label = String(_values[at] ?? "").split("\n");
      if (index === 0) {
        const x = left + valToPos(split, "x");
        if (x < left - 1 || x > right + 1) return [];
        const lines = label.map((part, row) => text(x, bottom + 18 + row * 15, part, "middle", colour));
        return [`<path d="M${n(x)} ${n(top)}V${n(bottom)}" stroke="${line}"/>`, ...lines];
      }
      const y = top + valToPos(split, "y");
      if (y < top - 1 || y > bottom + 1) return [];
      return [
        `<path d="M${n(left)} ${n(y)}H${n(right)}" stroke="${line}"/>`,
        ...label.slice(0, 1).map((part) => text(left - 8, y + 4, part, "end", colour)),
      ];
    });
  });
}

function strokeOf({ stroke }: uPlot.Series): string {
  // The plot makes a function of a colour.
  const colour = typeof stroke === "function" ? (stroke as unknown as () => unknown)() : stroke;
  return typeof colour === "string" ? colour : "none";
}

const dashOf = ({ dash }: uPlot.Series) => dash === undefined ? "" : ` stroke-dasharray="${dash.join(" ")}"`;

const n = (value: number) => String(Math.round(value * 100) / 100);

const rect = (x: number, y: number, width: number, height: number, fill: string) =>
  `<rect x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}" fill="${fill}"/>`;

const text = (x: number, y: number, content: string, anchor: string, fill: string) =>
  `<text x="${n(x)}" y="${n(y)}" text-anchor="${anchor}" fill="${fill}">${escaped(content)}</text>`;

function escaped(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
