/** Two parts above each other, with a divider that is moved by mouse or arrow keys. */
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { saved } from "../store/saved.ts";

const MIN = 15, MAX = 85;
/** Percent of the height. */
const share = saved<number>("split", 42, (value) => typeof value === "number" && value >= MIN && value <= MAX);

export function Splitter({ top, bottom }: { top: ComponentChildren; bottom: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const set = (percent: number) => share.value = Math.min(MAX, Math.max(MIN, percent));
  const onPointerMove = (event: PointerEvent) => {
    if (event.buttons === 0) return;
    const { top: start, height } = box.current!.getBoundingClientRect();
    set(100 * (event.clientY - start) / height);
  };
  return (
    <div class="splitter" ref={box} style={{ gridTemplateRows: `${share.value}% 6px minmax(0, 1fr)` }}>
      <div class="pane">{top}</div>
      <div
        class="line"
        role="separator"
        aria-orientation="horizontal"
        aria-label="Height of the editor"
        aria-valuenow={Math.round(share.value)}
        aria-valuemin={MIN}
        aria-valuemax={MAX}
        tabIndex={0}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={onPointerMove}
        onKeyDown={(event) => {
          if (event.key === "ArrowUp") set(share.value - 2);
          if (event.key === "ArrowDown") set(share.value + 2);
        }}
      />
      <div class="pane">{bottom}</div>
    </div>
  );
}
