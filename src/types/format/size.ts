/** Sizes in bytes, as texts for people. */
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function readableSize(bytes: number): string {
  let size = bytes, unit = 0;
  for (; size >= 1024 && unit < UNITS.length - 1; unit++) size /= 1024;
  return `${size.toFixed(1)} ${UNITS[unit]}`;
}
