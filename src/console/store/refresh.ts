/** Runs the chosen statement again and again. */
import { effect, signal } from "@preact/signals";
import { chosenRun, isRunning, rerun } from "./runs.ts";
import { activeTab } from "./tabs.ts";

/** Seconds; 0: not. */
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
    // It goes on for the tab that it was set for, while that is shown.
    if (activeTab.value.id !== tab || document.hidden || isRunning.value) return;
    if (chosenRun.value?.outcome?.error !== undefined) refreshing.value = 0;
    else rerun();
  }, seconds * 1000);
  return () => clearInterval(timer);
});
