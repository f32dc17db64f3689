/** The chart of a result, and the choice of its type. The drawing library is loaded when the first chart is shown. */
import type { ComponentType } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { MenuButton } from "../app/menu.tsx";
import { chartType, zone } from "../results/view-settings.ts";
import type { Rows } from "../server/client.ts";
import { release, runStatement } from "../server/results.ts";
import { isDark } from "../store/theme.ts";
import type { Chart } from "./chart.tsx";
import { type ChartType, dataOf, shapeOf, typesFor } from "./shape.ts";

interface Zoom {
  range: readonly [number, number];
  rows: Rows;
}

/** Buckets of a zoomed chart: about one for each pixel that a screen has. */
const BUCKETS_MAX = 1_000;

/** `statement`: asked again for finer samples of a range that the user has chosen. */
export function ChartView({ rows: given, statement }: { rows: Rows; statement: string }) {
  const { zoom, zoomTo } = useZoom(given, statement);
  const rows = zoom?.rows ?? given;
  const [Drawn, setDrawn] = useState<ComponentType<Parameters<typeof Chart>[0]>>();
  const canvas = useRef<HTMLCanvasElement>(undefined);
  const toSvg = useRef<() => string>(undefined);
  useEffect(() => {
    import("./chart.tsx").then((module) => setDrawn(() => module.Chart));
  }, []);
  const shape = useMemo(() => shapeOf(rows), [rows]);
  const types = shape === undefined ? [] : typesFor(shape);
  const type = types.find((one) => one === chartType.value) ?? types[0];
  const data = useMemo(() => shape === undefined ? undefined : dataOf(rows, shape, type), [rows, shape, type]);
  if (shape === undefined || data === undefined) {
    return (
      <p class="summary">A chart needs rows with a column of numbers, and one of times, texts or numbers for x.</p>
    );
  }
  const save = (url: string, name: string) => {
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
  };
  const saveSvg = () => {
    const url = URL.createObjectURL(new Blob([toSvg.current!()], { type: "image/svg+xml" }));
    save(url, "chart.svg");
    // The download has begun by then.
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  return (
    <>
      <div class="toolbar">
        <MenuButton
          text={nameOf(type)}
          items={types.map((one) => ({ name: nameOf(one), isChosen: one === type, run: () => chartType.value = one }))}
        />
        <button type="button" onClick={() => save(canvas.current!.toDataURL("image/png"), "chart.png")}>
          Save as PNG
        </button>
        <button type="button" onClick={saveSvg}>Save as SVG</button>
        {zoom === undefined ? <span class="hint">Drag zooms in, a double click shows all.</span> : (
          <>
            <button type="button" onClick={() => zoomTo(moved(zoom.range, -0.5))}>← Earlier</button>
            <button type="button" onClick={() => zoomTo(moved(zoom.range, 0.5))}>Later →</button>
            <button type="button" onClick={() => zoomTo(undefined)}>Show all</button>
          </>
        )}
      </div>
      {Drawn !== undefined && (
        <Drawn
          data={data}
          shape={shape}
          type={type}
          zone={zone.value}
          isDark={isDark.value}
          range={zoom?.range}
          onZoom={shape.xKind === "time" ? zoomTo : undefined}
          onReady={(drawn, drawnAsSvg) => {
            canvas.current = drawn;
            toSvg.current = drawnAsSvg;
          }}
        />
      )}
    </>
  );
}

const moved = ([from, to]: Zoom["range"], share: number): Zoom["range"] => {
  const by = (to - from) * share;
  return [from + by, to + by];
};

/** A range is shown at once with the rows that are there, then with finer ones, if the server can give them. */
function useZoom(given: Rows, statement: string) {
  const [zoom, setZoom] = useState<Zoom>();
  const asking = useRef<AbortController>(undefined);
  const isCoarse = useRef(false);
  useEffect(() => {
    setZoom(undefined);
    isCoarse.current = false;
    return () => asking.current?.abort();
  }, [given, statement]);
  const zoomTo = async (range: Zoom["range"] | undefined) => {
    asking.current?.abort();
    if (range === undefined) return setZoom(undefined);
    setZoom((before) => ({ range, rows: before?.rows ?? given }));
    if (isCoarse.current) return;
    const { signal } = asking.current = new AbortController();
    try {
      const [from, to] = range;
      const { rows, error } = await runStatement(statement, { signal, samples: { from, to, bucketsMax: BUCKETS_MAX } });
      if (rows?.spool !== undefined) release(rows.spool.id);
      // Without a SAMPLE BY, or with one that cannot be narrowed, there are no finer rows.
      if (error !== undefined) isCoarse.current = true;
      else if (rows !== undefined && rows.dataset.length > 0) setZoom({ range, rows });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  };
  return { zoom, zoomTo };
}

const nameOf = (type: ChartType) => type[0].toUpperCase() + type.slice(1);
