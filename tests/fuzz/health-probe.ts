/** Asks for health every few milliseconds, on a thread of its own, and tells how long each answer took. */
const times: number[] = [];
let isOver = false;

self.onmessage = async ({ data }: MessageEvent<string>) => {
  if (data === "end") {
    isOver = true;
    return;
  }
  while (!isOver) {
    const start = performance.now();
    try {
      await (await fetch(data)).text();
    } catch {
      times.push(Infinity);
      break;
    }
    times.push(performance.now() - start);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  while (!isOver) await new Promise((resolve) => setTimeout(resolve, 10));
  self.postMessage(times);
};
