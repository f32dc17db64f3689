/** The resources of the machine that this process may use. */
import { dirname, join } from "node:path/posix";
import type { Machine } from "./setting.ts";

export function thisMachine(): Machine {
  return {
    cores: navigator.hardwareConcurrency,
    hostName: Deno.hostname().toLowerCase(),
    memoryBytes: Math.min(Deno.systemMemoryInfo().total, groupMemoryBytes(readText)),
  };
}

const GROUPS = "/sys/fs/cgroup";

/**
 * The smallest memory limit of the process's control groups (of a container or a service); Infinity without one, or
 * outside Linux.
 * @see https://docs.kernel.org/admin-guide/cgroup-v2.html
 */
export function groupMemoryBytes(read: (path: string) => string | undefined): number {
  const groups = read("/proc/self/cgroup") ?? "";
  const limitIn = (directory: string, file: string) => {
    let smallest = Infinity;
    // In a container the path may be the host's, and only the top group is visible.
    for (let at = directory; at.startsWith(GROUPS); at = dirname(at)) {
      const text = read(join(at, file))?.trim();
      if (text !== undefined && /^\d+$/.test(text)) smallest = Math.min(smallest, Number(text));
    }
    return smallest;
  };
  const pathOf = (pattern: RegExp) => pattern.exec(groups)?.[1] ?? "/";
  return Math.min(
    limitIn(join(GROUPS, pathOf(/^0::(.*)$/m)), "memory.max"),
    limitIn(join(GROUPS, "memory", pathOf(/^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m)), "memory.limit_in_bytes"),
  );
}

function readText(path: string): string | undefined {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return undefined;
  }
}
