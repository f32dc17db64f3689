/** Resident bytes of a process: now, or the most ever (VmHWM). 0 if the system does not provide it. */
export function residentBytes(pid: number, field: "VmRSS" | "VmHWM" = "VmRSS"): number {
  if (Deno.build.os !== "linux") return 0;
  const status = Deno.readTextFileSync(`/proc/${pid}/status`);
  return 1024 * Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1] ?? 0);
}
