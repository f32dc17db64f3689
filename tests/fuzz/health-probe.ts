/** Queries health every few milliseconds on its own thread, and reports how long each answer took. */
import { type HealthAnswer, PROBE_PAUSE_MS } from "./times.ts";

const answers: HealthAnswer[] = [];
let isOver = false;

self.onmessage = async ({ data }: MessageEvent<string>) => {
  if (data === "end") {
    isOver = true;
    return;
  }
  let lateMs = 0;
  while (!isOver) {
    const start = Date.now(), startMs = performance.now();
    try {
      await (await fetch(data)).text();
    } catch {
      answers.push({ start, ms: Infinity, lateMs });
      break;
    }
    answers.push({ start, ms: performance.now() - startMs, lateMs });
    const pausedAtMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, PROBE_PAUSE_MS));
    lateMs = performance.now() - pausedAtMs - PROBE_PAUSE_MS;
  }
  while (!isOver) await new Promise((resolve) => setTimeout(resolve, 10));
  self.postMessage(answers);
};
