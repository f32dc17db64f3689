/** Sizes, durations and addresses as written in settings. Each parser returns undefined for invalid text. */

const SIZE_UNITS: Record<string, number> = { "": 1, b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** `64k`, `128m`, `1g`, `4096` in bytes. */
export function parseSize(text: string): number | undefined {
  const match = /^(\d+)\s*([bkmgt]?)(?<=[\dkmgt]|b)b?$/i.exec(text.trim());
  if (!match) return undefined;
  const bytes = Number(match[1]) * SIZE_UNITS[match[2]!.toLowerCase()]!;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Formats in the largest whole unit: `64k`. */
export function formatSize(bytes: number): string {
  for (const unit of ["t", "g", "m", "k"]) {
    const unitBytes = SIZE_UNITS[unit]!;
    if (bytes > 0 && bytes % unitBytes === 0) return bytes / unitBytes + unit;
  }
  return String(bytes);
}

export type TimeUnit = "us" | "ms" | "s";
const MICROS: Record<string, number> = { us: 1, ms: 1e3, s: 1e6, m: 60e6, h: 3600e6, d: 86400e6, w: 7 * 86400e6 };

/**
 * Parses `5m`, `500ms` or `300000` into `unit`, which also applies to numbers without a unit. Fractions of a unit are
 * rounded up.
 */
export function parseDuration(text: string, unit: TimeUnit): number | undefined {
  const match = /^(\d+)\s*(us|ms|s|m|h|d|w|)$/i.exec(text.trim());
  if (!match) return undefined;
  const micros = Number(match[1]) * MICROS[match[2]!.toLowerCase() || unit]!;
  const value = Math.ceil(micros / MICROS[unit]!);
  return Number.isSafeInteger(value) ? value : undefined;
}

export interface Address {
  /** The form that `listen` expects: `0.0.0.0` for `0`, IPv6 without brackets. */
  readonly hostname: string;
  readonly port: number;
}

/**
 * `0.0.0.0:9000`, `[::1]:9000`, `localhost:9000`; `0:9000` and `*:9000` bind all IPv4 adapters. Port 0: any free port.
 */
export function parseAddress(text: string): Address | undefined {
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([^\s:[\]]+)):(\d{1,5})$/.exec(text.trim());
  if (!match) return undefined;
  const port = Number(match[3]);
  if (port > 65_535) return undefined;
  const host = match[1] ?? match[2]!;
  return { hostname: host === "0" || host === "*" ? "0.0.0.0" : host, port };
}

export function formatAddress(address: Address): string {
  return address.hostname.includes(":")
    ? `[${address.hostname}]:${address.port}`
    : `${address.hostname}:${address.port}`;
}

/** True if the address can only be reached from this machine. */
export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "::1" || /^(::ffff:)?127\./i.test(hostname);
}
