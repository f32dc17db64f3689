/**
 * Compares the machine's limits with the server's needs. The results are advice in the log and do not prevent the
 * start.
 */

/** Limits of the system; undefined if unknown. */
export interface Limits {
  /** Soft limit on open files. */
  openFiles?: number;
  /** vm.overcommit_memory */
  overcommit?: number;
  /** vm.max_map_count */
  mapCount?: number;
  /** Memory that this process may use. */
  memoryBytes: number;
}

/** Each open table needs at least one file, each connection one. */
const OPEN_FILES_MIN = 8192;
const MAP_COUNT_MIN = 65_530;
const MEMORY_SHARE_MAX = 0.75;

export function advice(limits: Limits, wanted: { memoryBytes: number }): string[] {
  const lines: string[] = [];
  const { openFiles, overcommit, mapCount, memoryBytes } = limits;
  if (openFiles !== undefined && openFiles < OPEN_FILES_MIN) {
    lines.push(
      `limits: only ${openFiles} files may be open, which may not suffice for many tables and connections: raise it to 65536 or more ` +
        "(LimitNOFILE= of the service, or ulimit -n)",
    );
  }
  if (overcommit === 2) {
    lines.push(
      `limits: vm.overcommit_memory is 2, so that the ${
        mebibytes(wanted.memoryBytes)
      } of cairo.memory.size count as used ` +
        "from the start: 0 or 1 let pages count when they are touched",
    );
  }
  if (mapCount !== undefined && mapCount < MAP_COUNT_MIN) {
    lines.push(`limits: vm.max_map_count is ${mapCount}: set it to ${MAP_COUNT_MIN} or more`);
  }
  if (wanted.memoryBytes > memoryBytes * MEMORY_SHARE_MAX) {
    lines.push(
      `limits: cairo.memory.size is ${mebibytes(wanted.memoryBytes)} of ${
        mebibytes(memoryBytes)
      }, which leaves too little ` +
        "for the rest of the process and the system's file cache: half is a good size",
    );
  }
  return lines;
}

const mebibytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;

/** Only Linux provides these as files; elsewhere only the memory is known. */
export function limitsOf(memoryBytes: number, read: (path: string) => string | undefined = readText): Limits {
  const number = (text: string | undefined) => {
    const value = Number(text?.trim() || NaN);
    return Number.isFinite(value) ? value : undefined;
  };
  return {
    openFiles: number(/^Max open files\s+(\d+)/m.exec(read("/proc/self/limits") ?? "")?.[1]),
    overcommit: number(read("/proc/sys/vm/overcommit_memory")),
    mapCount: number(read("/proc/sys/vm/max_map_count")),
    memoryBytes,
  };
}

function readText(path: string): string | undefined {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return undefined;
  }
}
