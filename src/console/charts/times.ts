/** Labels of times along an axis: in 24 hours, with the date (for days: the year) where it changes. */
import type { Zone } from "../results/cells.ts";

const MINUTE = 60_000, DAY = 86_400_000;

/** `step`: milliseconds between the ticks. */
export function tickTexts(ticks: readonly number[], step: number, zone: Zone): string[] {
  let shown = "";
  return ticks.map((at) => {
    const [day, time] = partsOf(at, zone);
    if (step >= 28 * DAY) return step >= 365 * DAY ? day.slice(0, 4) : day.slice(0, 7);
    const isDays = step >= DAY;
    const short = isDays ? day.slice(5) : step < 1000 ? time : step < MINUTE ? time.slice(0, 8) : time.slice(0, 5);
    const below = isDays ? day.slice(0, 4) : day;
    if (below === shown) return short;
    shown = below;
    return `${short}\n${below}`;
  });
}

/** The time, with milliseconds only if there are any. */
export function timeText(at: number, zone: Zone): string {
  const [day, time] = partsOf(at, zone);
  return `${day} ${time.replace(/\.000$/, "")}`;
}

/** "2026-01-31" and "12:00:00.000" */
function partsOf(at: number, zone: Zone): [day: string, time: string] {
  const shifted = zone === "UTC" ? at : at - new Date(at).getTimezoneOffset() * MINUTE;
  const text = new Date(shifted).toISOString(), middle = text.indexOf("T");
  return [text.slice(0, middle), text.slice(middle + 1, -1)];
}
