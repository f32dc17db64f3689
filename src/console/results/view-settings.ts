/** How results are shown, kept over reloads. */
import { signal } from "@preact/signals";
import type { ChartType } from "../charts/shape.ts";
import { saved } from "../store/saved.ts";
import type { Zone } from "./cells.ts";

export const zone = saved<Zone>("zone", "UTC", (value) => value === "UTC" || value === "local");

/** The type of chart that the user has chosen last. It is drawn where it fits. */
export const chartType = signal<ChartType | undefined>(undefined);

/** Results are shown as a chart. */
export const isChart = saved<boolean>("chart", false, (value) => typeof value === "boolean");
