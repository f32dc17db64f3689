/**
 * Time zones: IANA names in any case, abbreviations of Java, fixed offsets (+05:30). The rules come from the runtime's
 * Intl, which is slow, so offsets are cached for ranges of eight days.
 */

export interface Zone {
  readonly name: string;
  /** The offset from UTC in seconds at a time (seconds since 1970 UTC). */
  offsetAt(second: number): number;
  /**
   * The time at which local clocks show `local` (seconds since 1970, as if UTC). In a gap, uses the offset before it;
   * in an overlap, the earlier time.
   */
  toUtc(local: number): number;
}

const CELL_SECONDS = 8 * 86400;

/** Abbreviations of java.time.ZoneId.SHORT_IDS, and a few common ones. */
const ABBREVIATIONS: Record<string, string> = {
  Z: "UTC",
  PST: "America/Los_Angeles",
  PDT: "America/Los_Angeles",
  CST: "America/Chicago",
  CDT: "America/Chicago",
  EST: "America/New_York",
  EDT: "America/New_York",
  MST: "America/Denver",
  MDT: "America/Denver",
  HST: "-10:00",
  AST: "America/Halifax",
  JST: "Asia/Tokyo",
  IST: "Asia/Kolkata",
  BST: "Europe/London",
  CEST: "Europe/Paris",
  EEST: "Europe/Helsinki",
  WEST: "Europe/Lisbon",
  MSK: "Europe/Moscow",
  AET: "Australia/Sydney",
  ACT: "Australia/Darwin",
  AGT: "America/Argentina/Buenos_Aires",
  ART: "Africa/Cairo",
  BET: "America/Sao_Paulo",
  CAT: "Africa/Harare",
  CNT: "America/St_Johns",
  CTT: "Asia/Shanghai",
  EAT: "Africa/Addis_Ababa",
  ECT: "Europe/Paris",
  IET: "America/Indiana/Indianapolis",
  MIT: "Pacific/Apia",
  NET: "Asia/Yerevan",
  NST: "America/St_Johns",
  PLT: "Asia/Karachi",
  PNT: "America/Phoenix",
  PRT: "America/Puerto_Rico",
  SST: "Pacific/Guadalcanal",
  VST: "Asia/Ho_Chi_Minh",
};

function fixed(name: string, offset: number): Zone {
  return { name, offsetAt: () => offset, toUtc: (local) => local - offset };
}

/** Parses `±hh`, `±hh:mm` or `±hhmm`, optionally after UTC or GMT, into seconds. Undefined for other texts. */
function parseOffset(text: string): number | undefined {
  const match = /^(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?$/i.exec(text);
  if (match === null) return undefined;
  const hours = Number(match[2]), minutes = Number(match[3] ?? 0);
  if (hours > 18 || minutes > 59) return undefined;
  return (match[1] === "-" ? -1 : 1) * (hours * 3600 + minutes * 60);
}

/** The range of Date, less a day, as the local time has to be in it, too. */
const ASKED_SECONDS_MAX = 8.64e12 - 86_400;

class NamedZone implements Zone {
  private readonly format: Intl.DateTimeFormat;
  /** For each range: its offset, or the change within: [instant, before, after]. */
  private readonly cells = new Map<number, number | [at: number, before: number, after: number]>();
  private lastCell = NaN;
  private last: number | [number, number, number] = 0;

  constructor(readonly name: string) {
    this.format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      hourCycle: "h23",
      era: "short",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  }

  offsetAt(second: number): number {
    const cell = Math.floor(second / CELL_SECONDS);
    if (cell !== this.lastCell) {
      let found = this.cells.get(cell);
      if (found === undefined) {
        found = this.work(cell);
        this.cells.set(cell, found);
      }
      this.last = found;
      this.lastCell = cell;
    }
    const known = this.last;
    return typeof known === "number" ? known : second < known[0] ? known[1] : known[2];
  }

  toUtc(local: number): number {
    const before = this.offsetAt(local - 86400), after = this.offsetAt(local + 86400);
    if (before === after && this.offsetAt(local - before) === before) return local - before;
    // The earlier time has the larger offset, if that offset is valid there.
    const early = Math.max(before, after), late = Math.min(before, after);
    if (this.offsetAt(local - early) === early) return local - early;
    if (this.offsetAt(local - late) === late) return local - late;
    return local - before;
  }

  private work(cell: number): number | [number, number, number] {
    const from = cell * CELL_SECONDS, to = from + CELL_SECONDS - 1;
    const before = this.ask(from), after = this.ask(to);
    if (before === after) return before;
    let low = from, high = to; // invariant: `before` is valid at `low`, not at `high`
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.ask(middle) === before) low = middle;
      else high = middle;
    }
    return [high, before, after];
  }

  private ask(second: number): number {
    const clamped = Math.max(-ASKED_SECONDS_MAX, Math.min(ASKED_SECONDS_MAX, second));
    const parts: Record<string, string> = {};
    for (const { type, value } of this.format.formatToParts(clamped * 1000)) parts[type] = value;
    const year = parts.era === "BC" ? 1 - Number(parts.year) : Number(parts.year);
    const date = new Date(0);
    date.setUTCFullYear(year, Number(parts.month) - 1, Number(parts.day));
    date.setUTCHours(Number(parts.hour), Number(parts.minute), Number(parts.second));
    return date.getTime() / 1000 - clamped;
  }
}

const known = new Map<string, Zone | undefined>();

/** Longer than the name of any zone. Names are kept, and texts in columns can have millions of characters. */
const NAME_LENGTH_MAX = 64;

/** The zone of a name or offset; undefined if there is none. */
export function zoneOf(name: string): Zone | undefined {
  if (name.length > NAME_LENGTH_MAX) return undefined;
  if (known.has(name)) return known.get(name);
  const zone = make(name);
  if (known.size < 4096) known.set(name, zone);
  return zone;
}

function make(name: string): Zone | undefined {
  const offset = parseOffset(name);
  if (offset !== undefined) return fixed(name, offset);
  const upper = name.toUpperCase();
  if (upper === "UTC" || upper === "GMT" || upper === "Z") return fixed("UTC", 0);
  const long = Object.hasOwn(ABBREVIATIONS, upper) ? ABBREVIATIONS[upper] : undefined;
  if (long !== undefined) return make(long);
  if (!/^[A-Za-z][A-Za-z0-9_+\-/]*$/.test(name)) return undefined;
  try {
    return new NamedZone(new Intl.DateTimeFormat("en-US", { timeZone: name }).resolvedOptions().timeZone);
  } catch {
    return undefined; // RangeError: the runtime does not know the zone
  }
}
