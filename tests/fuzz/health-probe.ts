/** Queries health every few milliseconds on its own thread, and reports how long each answer took. */
import type { HealthAnswer } from "./watched.ts";

const answers: HealthAnswer[] = [];
let isOver = false;

self.onmessage = async ({ data }: MessageEvent<string>) => {
  if (data === "end") {
    isOver = true;
    return;
  }
  while (!isOver) {
    const start = Date.now(), startMs = performance.now();
    try {
      await (await fetch(data)).text();
    } catch {
      answers.push({ start, ms: Infinity });
      break;
    }
    answers.push({ start, ms: performance.now() - startMs });
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  while (!isOver) await new Promise((resolve) => setTimeout(resolve, 10));
  self.postMessage(answers);
};
