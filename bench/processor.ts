/** Processor time of all threads of a process that have not ended, by the scheduler's statistics. NaN where the system does not tell. */
export function processorMs(pid: number): number {
  try {
    let nanos = 0;
    for (const { name } of Deno.readDirSync(`/proc/${pid}/task`)) {
      nanos += Number(Deno.readTextFileSync(`/proc/${pid}/task/${name}/schedstat`).split(" ")[0]);
    }
    return nanos / 1e6;
  } catch {
    return NaN; // not Linux
  }
}
