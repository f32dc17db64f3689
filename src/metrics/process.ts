/** Metrics that the system provides about this process. */
import { statfsSync } from "node:fs";
import process from "node:process";
import type { Metrics } from "./contract.ts";

export function readProcess(metrics: Metrics): void {
  metrics.read("cpuSeconds", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  metrics.read("memoryRss", () => Deno.memoryUsage().rss);
  metrics.read("memoryJsHeap", () => Deno.memoryUsage().heapUsed);
  metrics.read("startTimeSeconds", () => performance.timeOrigin / 1000);
  metrics.read("uptimeSeconds", () => performance.now() / 1000);
  if (Deno.build.os !== "linux") return;
  metrics.read("openFiles", () => [...Deno.readDirSync("/proc/self/fd")].length);
  metrics.read("openFilesMax", () => {
    const soft = /^Max open files\s+(\d+)/m.exec(Deno.readTextFileSync("/proc/self/limits"));
    return soft === null ? NaN : Number(soft[1]);
  });
}

/** Registers the metrics of the disk that contains the root. */
export function readDisk(metrics: Metrics, root: string): void {
  metrics.read("diskFreeBytes", () => {
    const { bavail, bsize } = statfsSync(root);
    return bavail * bsize;
  });
  metrics.read("diskSizeBytes", () => {
    const { blocks, bsize } = statfsSync(root);
    return blocks * bsize;
  });
}
