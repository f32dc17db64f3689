/** Display settings of results, kept over reloads. */
import { signal } from "@preact/signals";
import type { ChartType } from "../charts/shape.ts";
import { saved } from "../store/saved.ts";
import type { Zone } from "./cells.ts";

export const zone = saved<Zone>("zone", "UTC", (value) => value === "UTC" || value === "local");

/** The chart type that the user has chosen last. It is used where it is suitable. */
export const chartType = signal<ChartType | undefined>(undefined);

/** True if results are shown as a chart. */
export const isChart = saved<boolean>("chart", false, (value) => typeof value === "boolean");
