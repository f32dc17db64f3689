/** The chart of a result, and the choice of its type. The drawing library is loaded when the first chart is shown. */
import type { ComponentType } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { MenuButton } from "../app/menu.tsx";
import { zone } from "../results/view-settings.ts";
import type { Rows } from "../server/client.ts";
import { isDark } from "../store/theme.ts";
import type { Chart } from "./chart.tsx";
import { type ChartType, dataOf, shapeOf, typesFor } from "./shape.ts";

export function ChartView({ rows }: { rows: Rows }) {
  const [Drawn, setDrawn] = useState<ComponentType<Parameters<typeof Chart>[0]>>();
  const [chosen, setChosen] = useState<ChartType>();
  const canvas = useRef<HTMLCanvasElement>(undefined);
  useEffect(() => {
    import("./chart.tsx").then((module) => setDrawn(() => module.Chart));
  }, []);
  const shape = useMemo(() => shapeOf(rows), [rows]);
  const types = shape === undefined ? [] : typesFor(shape);
  const type = chosen !== undefined && types.includes(chosen) ? chosen : types[0];
  const data = useMemo(() => shape === undefined ? undefined : dataOf(rows, shape, type), [rows, shape, type]);
  if (shape === undefined || data === undefined) {
    return (
      <p class="summary">A chart needs rows with a column of numbers, and one of times, texts or numbers for x.</p>
    );
  }
  const save = () => {
    const link = document.createElement("a");
    link.href = canvas.current!.toDataURL("image/png");
    link.download = "chart.png";
    link.click();
  };
  return (
    <>
      <div class="toolbar">
        <MenuButton
          text={nameOf(type)}
          items={types.map((one) => ({ name: nameOf(one), isChosen: one === type, run: () => setChosen(one) }))}
        />
        <button type="button" onClick={save}>Save as PNG</button>
        <span class="hint">Drag zooms in, a double click shows all.</span>
      </div>
      {Drawn !== undefined && (
        <Drawn
          data={data}
          shape={shape}
          type={type}
          zone={zone.value}
          isDark={isDark.value}
          onReady={(drawn) => canvas.current = drawn}
        />
      )}
    </>
  );
}

const nameOf = (type: ChartType) => type[0].toUpperCase() + type.slice(1);
