import { LONG_MAX } from "../../types/mod.ts";

/** The query part of a URL: `+` is a blank, the last of equal names counts, names are case-sensitive. */
export class Parameters {
  private readonly raw = new Map<string, string>();
  private readonly decoded = new Map<string, string | undefined>();

  constructor(query: string) {
    for (let at = 0; at < query.length;) {
      let end = query.indexOf("&", at);
      if (end < 0) end = query.length;
      const pair = query.slice(at, end);
      const equals = pair.indexOf("=");
      if (pair !== "") {
        this.raw.set(equals < 0 ? pair : pair.slice(0, equals), equals < 0 ? "" : pair.slice(equals + 1));
      }
      at = end + 1;
    }
  }

  /** The decoded text, or undefined if it is missing or cannot be decoded. */
  get(name: string): string | undefined {
    const raw = this.raw.get(name);
    if (raw === undefined || !isEncoded(raw)) return raw;
    if (!this.decoded.has(name)) this.decoded.set(name, decode(raw));
    return this.decoded.get(name);
  }

  /** True if the parameter is present but not percent-encoded UTF-8. */
  isBroken(name: string): boolean {
    return this.raw.has(name) && this.get(name) === undefined;
  }

  /** `true`, in any case. Other values count as false. */
  isTrue(name: string): boolean {
    return this.isWord(name, "true");
  }

  /** True if the value is `word`, in any case. */
  isWord(name: string, word: string): boolean {
    return this.raw.get(name)?.toLowerCase() === word;
  }
}

function isEncoded(raw: string): boolean {
  return raw.includes("%") || raw.includes("+");
}

function decode(raw: string): string | undefined {
  try {
    return decodeURIComponent(raw.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

/** More targets, or longer ones, are not kept. */
const TARGETS_MAX = 256, TARGET_LENGTH_MAX = 1_024;

interface Target {
  path: string;
  parameters: Parameters;
}

/** Reads the targets of requests. Clients ask for the same ones again and again. */
export class Targets {
  private readonly known = new Map<string, Target>();

  read(target: string): Target {
    const known = this.known.get(target);
    if (known !== undefined) return known;
    const { path, query } = splitTarget(target), read = { path, parameters: new Parameters(query) };
    if (target.length > TARGET_LENGTH_MAX) return read;
    if (this.known.size >= TARGETS_MAX) this.known.clear();
    this.known.set(target, read);
    return read;
  }
}

/** Splits by hand, because `new URL` costs more than a whole small query. Proxies send a whole URL as the target. */
function splitTarget(target: string): { path: string; query: string } {
  const start = target.startsWith("/") ? 0 : pathStart(target);
  const question = target.indexOf("?", start);
  return question < 0
    ? { path: target.slice(start), query: "" }
    : { path: target.slice(start, question), query: target.slice(question + 1) };
}

function pathStart(url: string): number {
  const authority = /^https?:\/\/[^/?]*/i.exec(url);
  return authority === null ? 0 : authority[0].length;
}

/** The names in a list of columns. One in double quotes may have commas, and a comma may stand at the end. */
export function columnNames(list: string): string[] {
  const names = list.match(/(?:"[^"]*"?|[^,"])+|,(?=,)|^,/g) ?? [];
  return names.map((name) => name === "," ? "" : name.replaceAll('"', ""));
}

export interface RowWindow {
  first: number;
  count: number;
}

const ALL_ROWS = Number.MAX_SAFE_INTEGER;

/** A number in the range of LONG, clamped to safe integers; undefined for anything else. */
function limitNumber(text: string): number | undefined {
  if (!/^[+-]?\d+(?:_\d+)*L?$/i.test(text)) return undefined;
  const exact = BigInt(text.replace(/[+_L]/gi, ""));
  if (exact > LONG_MAX || exact < -LONG_MAX - 1n) return undefined;
  return Math.max(-ALL_ROWS, Math.min(ALL_ROWS, Number(exact)));
}

/** The two parts of `limit`: `high` is undefined for `N`, and infinite for `L,` and `L,x`. */
function limitParts(text: string): { low: number; high: number | undefined } | undefined {
  const comma = text.indexOf(",");
  const low = limitNumber((comma < 0 ? text : text.slice(0, comma)).trim());
  if (low === undefined) return undefined;
  return { low, high: comma < 0 ? undefined : limitNumber(text.slice(comma + 1).trim()) ?? ALL_ROWS };
}

/** /exec: `N` means rows 1 to N, `L,H` rows L to H, counted from one and inclusive; at least one row. */
export function execWindow(limit: string | undefined): RowWindow | undefined {
  const parts = limit === undefined ? undefined : limitParts(limit);
  if (parts === undefined) return undefined;
  if (parts.high === undefined) return { first: 0, count: Math.max(1, parts.low) };
  const first = Math.max(1, parts.low) - 1;
  return { first, count: Math.max(1, parts.high - first) };
}

/** /exp: `N` means the first N rows, `L,H` the rows after row L up to row H. */
export function expWindow(limit: string | undefined): RowWindow | undefined {
  const parts = limit === undefined ? undefined : limitParts(limit);
  if (parts === undefined) return undefined;
  if (parts.high === undefined) return { first: 0, count: Math.max(0, parts.low) };
  const first = Math.max(0, parts.low);
  return { first, count: Math.max(0, parts.high - first) };
}

/** Limits the window to the maximum rows of a reply; undefined if there is no limit. */
export function capWindow(window: RowWindow | undefined, maxRows: number): RowWindow | undefined {
  if (maxRows >= ALL_ROWS) return window;
  return { first: window?.first ?? 0, count: Math.min(window?.count ?? ALL_ROWS, maxRows) };
}
