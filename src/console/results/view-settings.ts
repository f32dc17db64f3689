/** How results are shown, kept over reloads. */
import { saved } from "../store/saved.ts";
import type { Zone } from "./cells.ts";

export const zone = saved<Zone>("zone", "UTC", (value) => value === "UTC" || value === "local");

/** Results are shown as a chart. */
export const isChart = saved<boolean>("chart", false, (value) => typeof value === "boolean");
