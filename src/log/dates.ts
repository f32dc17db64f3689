/**
 * Formats times by Java's pattern letters, as in log.conf and server.conf: yyyy yy MM M MMM dd d EEE HH H mm m ss s SSS UUU z.
 * Text in single quotes and all characters except letters are copied.
 */
export interface DateFormat {
  (timeMicros: number): string;
}

interface Parts {
  year: number;
  month: number;
  day: number;
  weekday: number;
  hour: number;
  minute: number;
  second: number;
  micros: number;
}

/** `zone`: "Z" or an IANA name. `zoneText`: the output of `z`. @throws RangeError for an unknown zone or locale. */
export function dateFormat(pattern: string, zone = "Z", locale = "en", zoneText = zone): DateFormat {
  const tokens = pattern.match(/'[^']*'|([A-Za-z])\1*|[^A-Za-z']+/g) ?? [];
  const months = names(locale, { month: "short" }, (index) => Date.UTC(2024, index, 1), 12);
  const weekdays = names(locale, { weekday: "short" }, (index) => Date.UTC(2024, 0, 7 + index), 7);
  const offset = zoneOffset(zone);
  const pad = (value: number, width: number) => String(value).padStart(width, "0");
  const writers = tokens.map((token): (parts: Parts) => string => {
    if (token[0] === "'") return () => token.slice(1, -1) || "'";
    const width = token.length;
    switch (token[0]) {
      case "y":
        return width === 2 ? (p) => pad(p.year % 100, 2) : (p) => pad(p.year, Math.min(width, 4));
      case "M":
        return width > 2 ? (p) => months[p.month - 1]! : (p) => pad(p.month, width);
      case "d":
        return (p) => pad(p.day, width);
      case "E":
        return (p) => weekdays[p.weekday]!;
      case "H":
        return (p) => pad(p.hour, width);
      case "h":
        return (p) => pad(p.hour % 12 || 12, width);
      case "a":
        return (p) => p.hour < 12 ? "AM" : "PM";
      case "m":
        return (p) => pad(p.minute, width);
      case "s":
        return (p) => pad(p.second, width);
      case "S":
        return (p) => pad(Math.floor(p.micros / 1000), 3);
      case "U":
        return (p) => pad(p.micros % 1000, 3);
      case "z":
        return () => zoneText;
      default:
        return () => token;
    }
  });
  return (timeMicros) => {
    const local = timeMicros + offset(timeMicros) * 1000;
    const date = new Date(Math.floor(local / 1000));
    const parts: Parts = {
      year: date.getUTCFullYear(),
      month: date.getUTCMonth() + 1,
      day: date.getUTCDate(),
      weekday: date.getUTCDay(),
      hour: date.getUTCHours(),
      minute: date.getUTCMinutes(),
      second: date.getUTCSeconds(),
      micros: ((local % 1e6) + 1e6) % 1e6,
    };
    let text = "";
    for (const write of writers) text += write(parts);
    return text;
  };
}

function names(
  locale: string,
  options: Intl.DateTimeFormatOptions,
  timeOf: (index: number) => number,
  count: number,
): string[] {
  const format = new Intl.DateTimeFormat(locale, { ...options, timeZone: "UTC" });
  return Array.from({ length: count }, (_, index) => format.format(timeOf(index)));
}

/**
 * Milliseconds to add to UTC. Offsets change only at whole quarters of an hour, so a result is cached for that long.
 */
function zoneOffset(zone: string): (timeMicros: number) => number {
  if (zone === "Z" || zone === "UTC") return () => 0;
  const format = new Intl.DateTimeFormat("en-u-hc-h23", {
    timeZone: zone,
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  const QUARTER_MS = 900_000;
  let knownQuarter = NaN;
  let known = 0;
  return (timeMicros) => {
    const quarter = Math.floor(timeMicros / 1000 / QUARTER_MS);
    if (quarter === knownQuarter) return known;
    const at = quarter * QUARTER_MS;
    const parts = format.formatToParts(at);
    const part = (name: string) => Number(parts.find(({ type }) => type === name)?.value);
    known = Date.UTC(part("year"), part("month") - 1, part("day"), part("hour"), part("minute"), part("second")) - at;
    knownQuarter = quarter;
    return known;
  };
}
