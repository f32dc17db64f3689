/** The chart of a result, and the choice of its type. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { MenuButton } from "../app/menu.tsx";
import { countText } from "../results/summary.ts";
import { chartType } from "../results/view-settings.ts";
import type { Rows } from "../server/client.ts";
import { ExpiredError, release, runStatement } from "../server/results.ts";
import { saveAddress, saveFile } from "../store/files.ts";
import { notify } from "../store/notices.ts";
import type { DrawnChart } from "./chart.tsx";
import { noteOf } from "./chart-note.ts";
import { LazyChart } from "./lazy-chart.tsx";
import { drawnRange, type DrawnRows, useDrawnRows, type XRange } from "./drawn-rows.ts";
import { type ChartType, dataOf, type Shape, shapeOf, typeFor, typesFor } from "./shape.ts";

interface Zoom {
  range: XRange;
  drawn: DrawnRows;
}

/** Buckets of a zoomed chart: about one for each pixel of a screen. */
const BUCKETS_MAX = 1_000;

interface Props {
  rows: Rows;
  /** Needed to request finer samples of a range that the user selects. */
  statement: string;
  onExpired(): void;
}

export function ChartView({ rows: given, statement, onExpired }: Props) {
  const firstShape = useMemo(() => shapeOf(given), [given]);
  const firstType = firstShape && typeFor(firstShape, chartType.value);
  const tellFault = (error: unknown) => error instanceof ExpiredError ? onExpired() : notify(String(error));
  const { drawn: whole, readCount } = useDrawnRows(given, firstShape, firstType, tellFault);
  const { zoom, zoomTo } = useZoom(given, statement, whole, firstShape, firstType, tellFault);
  const drawn = zoom?.drawn ?? whole, rows = drawn?.rows;
  const [picture, setPicture] = useState<DrawnChart>();
  // The first rows may not contain all series.
  const shape = useMemo(() => rows === undefined ? undefined : shapeOf(rows), [rows]);
  const type = shape && typeFor(shape, chartType.value);
  const data = useMemo(() => rows && shape && type && dataOf(rows, shape, type), [rows, shape, type]);
  if (firstShape !== undefined && drawn === undefined) {
    return (
      <p class="summary" role="status">
        Reading the rows{readCount > 0 && `: ${readCount.toLocaleString("en")} of ${countText(given.count)}`} …
      </p>
    );
  }
  if (shape === undefined || type === undefined || data === undefined) {
    return (
      <p class="summary">A chart needs rows with a column of numbers, and one of times, texts or numbers for x.</p>
    );
  }
  return (
    <>
      <div class="toolbar">
        <MenuButton
          text={nameOf(type)}
          items={typesFor(shape).map((one) => ({
            name: nameOf(one),
            isChosen: one === type,
            run: () => chartType.value = one,
          }))}
        />
        {data.categories === undefined && (
          <>
            <button type="button" onClick={() => picture?.zooming?.zoomBy(0.5)}>Zoom in</button>
            <button type="button" onClick={() => picture?.zooming?.zoomBy(2)}>Zoom out</button>
          </>
        )}
        <button type="button" onClick={() => saveAddress(picture!.canvas.toDataURL("image/png"), "chart.png")}>
          Save as PNG
        </button>
        <button type="button" onClick={() => saveFile("chart.svg", [picture!.toSvg()], "image/svg+xml")}>
          Save as SVG
        </button>
        {zoom !== undefined && (
          <>
            <button type="button" onClick={() => zoomTo(moved(zoom.range, -0.5))}>← Earlier</button>
            <button type="button" onClick={() => zoomTo(moved(zoom.range, 0.5))}>Later →</button>
            <button type="button" onClick={() => zoomTo(undefined)}>Show all</button>
          </>
        )}
        {zoom === undefined && <span class="hint ways">{ZOOM_HINT}</span>}
        <span class="hint">{noteOf(drawn!, given, type)}</span>
      </div>
      <LazyChart
        data={data}
        shape={shape}
        type={type}
        range={zoom?.range}
        onZoom={shape.xKind === "time" ? zoomTo : undefined}
        onReady={setPicture}
      />
    </>
  );
}

const ZOOM_HINT = "Drag zooms in, a double click shows all. Keys: ← → + − 0.";

const moved = ([from, to]: XRange, share: number): XRange => {
  const by = (to - from) * share;
  return [from + by, to + by];
};

/**
 * A range is first shown with the existing points, then with finer ones: samples that the server computes for a SAMPLE
 * BY, or more of the rows of a result that was reduced.
 */
function useZoom(
  given: Rows,
  statement: string,
  whole: DrawnRows | undefined,
  shape: Shape | undefined,
  type: ChartType | undefined,
  onFault: (error: unknown) => void,
) {
  const [zoom, setZoom] = useState<Zoom>();
  const asking = useRef<AbortController>(undefined);
  const hasNoSamples = useRef(false);
  useEffect(() => {
    setZoom(undefined);
    hasNoSamples.current = false;
    return () => asking.current?.abort();
  }, [given, statement]);
  const zoomTo = async (range: XRange | undefined) => {
    asking.current?.abort();
    if (range === undefined || whole === undefined) return setZoom(undefined);
    setZoom((before) => ({ range, drawn: before?.drawn ?? whole }));
    const { signal } = asking.current = new AbortController();
    try {
      const drawn = await samplesOf(range, signal) ?? await rowsOf(range, signal);
      if (drawn !== undefined && !signal.aborted) setZoom({ range, drawn });
    } catch (error) {
      if (!signal.aborted) onFault(error);
    }
  };
  const samplesOf = async ([from, to]: XRange, signal: AbortSignal): Promise<DrawnRows | undefined> => {
    if (hasNoSamples.current) return undefined;
    const { rows, error } = await runStatement(statement, { signal, samples: { from, to, bucketsMax: BUCKETS_MAX } });
    if (rows?.spool !== undefined) release(rows.spool.id);
    // There is no SAMPLE BY, or one that cannot be narrowed.
    if (error !== undefined) hasNoSamples.current = true;
    return rows === undefined || rows.dataset.length === 0
      ? undefined
      : { rows, rowsOfPoint: 1, isCut: false, read: [] };
  };
  const rowsOf = async (range: XRange, signal: AbortSignal): Promise<DrawnRows | undefined> => {
    if (whole!.rowsOfPoint === 1 || shape === undefined || type === undefined) return undefined;
    const drawn = await drawnRange(whole!, given, shape, type, range, signal);
    return drawn.rows.dataset.length === 0 ? undefined : drawn;
  };
  return { zoom, zoomTo };
}

const nameOf = (type: ChartType) => type.charAt(0).toUpperCase() + type.slice(1);
