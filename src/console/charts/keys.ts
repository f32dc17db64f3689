/** What a drawn chart does by keys: crosshair, zoom, pan, and hiding of series. */
import type uPlot from "uplot";

export interface Zooming {
  /** Zooms around the crosshair, or the middle: 0.5 halves the range, 2 doubles it. Showing all ends the zoom. */
  zoomBy(factor: number): void;
  /** Moves the range by a share of it. */
  moveBy(share: number): void;
  showAll(): void;
}

/** `onZoom`: called with the range, or undefined for all. */
export function zoomingOf(
  plot: uPlot,
  onZoom: (range: readonly [number, number] | undefined) => void,
): Zooming {
  const ends = () => {
    const [x] = plot.data;
    return [x[0] ?? Infinity, x.at(-1) ?? -Infinity] as const;
  };
  /** Undefined without data. */
  const range = () => {
    const { min, max } = plot.scales.x ?? {};
    return min == null || max == null ? undefined : [min, max] as const;
  };
  const show = (from: number, to: number) => {
    plot.setScale("x", { min: from, max: to });
    onZoom([from, to]);
  };
  // The data of a zoomed chart may be those of its range alone, so the widest range that was shown is all.
  let [first, last] = ends();
  const widen = () => {
    first = Math.min(first, ends()[0]);
    last = Math.max(last, ends()[1]);
  };
  const showAll = () => {
    widen();
    if (first <= last) plot.setScale("x", { min: first, max: last });
    onZoom(undefined);
  };
  return {
    zoomBy(factor) {
      widen();
      const shown = range();
      if (shown === undefined) return;
      const [from, to] = shown, crosshair = plot.data[0][plot.cursor.idx ?? -1];
      const center = crosshair === undefined ? (from + to) / 2 : Math.min(to, Math.max(from, crosshair));
      const [nextFrom, nextTo] = [center + (from - center) * factor, center + (to - center) * factor];
      if (nextTo <= nextFrom) return;
      if (factor > 1 && nextFrom <= first && nextTo >= last) showAll();
      else show(nextFrom, nextTo);
    },
    moveBy(share) {
      const shown = range();
      if (shown === undefined) return;
      const [from, to] = shown, by = (to - from) * share;
      show(from + by, to + by);
    },
    showAll,
  };
}

/** Steps of the crosshair with Shift. */
const STEPS = 10;

/** `zooming`: undefined for an axis that has no range. */
export function listenForKeys(element: HTMLElement, plot: uPlot, zooming: Zooming | undefined): () => void {
  const moveCrosshair = (by: number) => {
    const [x] = plot.data, { min = -Infinity, max = Infinity } = plot.scales.x ?? {};
    const first = x.findIndex((at) => at >= min), last = x.findLastIndex((at) => at <= max);
    const { idx } = plot.cursor;
    const next = x[Math.min(last, Math.max(first, idx == null ? by > 0 ? first : last : idx + by))];
    // There is no point in the range.
    if (first < 0 || last < first || next === undefined) return;
    // The last argument, which is not in the types, moves the crosshairs of the group too.
    const setCursor = plot.setCursor as (at: uPlot.Cursor, fires: boolean, publishes: boolean) => void;
    setCursor({ left: plot.valToPos(next, "x"), top: plot.over.clientHeight / 2 }, true, true);
  };
  const listener = (event: KeyboardEvent) => {
    const { key, shiftKey, ctrlKey, altKey, metaKey } = event;
    // Those of the legend are its own.
    if (ctrlKey || altKey || metaKey || event.target !== element) return;
    const steps = shiftKey ? STEPS : 1;
    const keys: Record<string, (() => void) | undefined> = {
      ArrowLeft: () => moveCrosshair(-steps),
      ArrowRight: () => moveCrosshair(steps),
      "+": zooming && (() => zooming.zoomBy(0.5)),
      "-": zooming && (() => zooming.zoomBy(2)),
      "0": zooming?.showAll,
      PageUp: zooming && (() => zooming.moveBy(-0.5)),
      PageDown: zooming && (() => zooming.moveBy(0.5)),
    };
    const found = keys[key === "=" ? "+" : key];
    if (found === undefined) return;
    event.preventDefault();
    found();
  };
  element.addEventListener("keydown", listener);
  return () => element.removeEventListener("keydown", listener);
}

/** Makes the names in the legend buttons that hide their series. */
export function makeLegendButtons(plot: uPlot): void {
  const names = [...plot.root.querySelectorAll<HTMLElement>(".u-legend .u-label")];
  // The first one is the name of x, which is not hidden.
  const buttons = plot.series.map((_, at) => at === 0 ? undefined : names.at(at - plot.series.length));
  const show = () =>
    buttons.forEach((button, at) => button?.setAttribute("aria-pressed", String(plot.series[at]?.show)));
  for (const button of buttons) {
    if (button === undefined) continue;
    button.setAttribute("role", "button");
    button.tabIndex = 0;
    button.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      button.click();
    });
  }
  (plot.hooks.setSeries ??= []).push(show);
  show();
}
