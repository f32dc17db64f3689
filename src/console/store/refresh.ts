/** Runs the chosen statement repeatedly. */
import { effect, signal } from "@preact/signals";
import { chosenRun, isRunning, rerun } from "./runs.ts";
import { activeTab } from "./tabs.ts";

/** Interval in seconds; 0 means off. */
export const refreshing = signal(0);
let tab = 0;

export function setRefreshing(seconds: number): void {
  tab = activeTab.value.id;
  refreshing.value = seconds;
}

effect(() => {
  const seconds = refreshing.value;
  if (seconds === 0) return;
  const timer = setInterval(() => {
    // Continues only while the tab for which it was set is shown.
    if (activeTab.value.id !== tab || document.hidden || isRunning.value) return;
    if (chosenRun.value?.outcome?.error !== undefined) refreshing.value = 0;
    else rerun();
  }, seconds * 1000);
  return () => clearInterval(timer);
});
