/** When a materialized view is refreshed, as CREATE and ALTER MATERIALIZED VIEW have it. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { floorDivide, UNIT_NANOS } from "../../types/calendar.ts";
import { typeOf } from "../../types/mod.ts";
import { zoneOf } from "../../types/zone.ts";
import type { Materialized, RefreshPeriod, RefreshRule, UnitCount } from "../plan.ts";
import { at, given, type Node, optional, token } from "../tree-nodes.ts";
import type { Form } from "./statement.ts";

const MICROS = typeOf("TIMESTAMP").text;

/** As written: START is optional. */
type WrittenRule =
  | Exclude<RefreshRule, { kind: "timer" }>
  | Omit<Extract<RefreshRule, { kind: "timer" }>, "startMicros"> & { readonly startMicros?: number };

type Sampled = Materialized["samplings"][number];

/** `nowMicros`: the start without START. `sampling`: of the view's outer SAMPLE BY. */
export type WrittenRefresh = (nowMicros: () => bigint, sampling: Sampled) => RefreshRule;

type WrittenPeriod = (sampling: Sampled) => Omit<RefreshPeriod, "startMicros">;

/** By the letters of durations, as in SAMPLE BY. */
const UNITS: Readonly<Record<string, string>> = {
  s: "SECOND",
  m: "MINUTE",
  h: "HOUR",
  d: "DAY",
  w: "WEEK",
  M: "MONTH",
  y: "YEAR",
};

const INTERVAL_UNITS = "mhdwMy", PERIOD_UNITS = "smhd";

export const refreshParts: Pick<Form, "grammar" | "actions"> = {
  grammar: String.raw`
  refreshRule = "REFRESH" refreshKind? "DEFERRED"? refreshStart? refreshPeriod?
  refreshPeriod = "PERIOD" "(" "LENGTH" anyNumber periodZone? periodDelay? ")"  -- length
                | "PERIOD" "(" "SAMPLE" "BY" "INTERVAL" ")"                     -- sample
  periodZone = "TIME" "ZONE" "<string>"
  periodDelay = "DELAY" anyNumber
  refreshKind = ("IMMEDIATE" | "INCREMENTAL")            -- immediate
              | "MANUAL"                                 -- manual
              | "EVERY" anyNumber                        -- every
  refreshStart = "START" "<string>" ("TIME" "ZONE" "<string>")?`,
  actions: {
    refreshRule(_refresh, kind, deferred, start, period): WrittenRefresh {
      let rule = optional<WrittenRule>(kind) ?? { kind: "immediate" };
      if (given(start)) {
        if (rule.kind !== "timer") throw new SqlError("START belongs to REFRESH EVERY", at(start), SQLSTATE.syntax);
        rule = { ...rule, ...start.child(0).tree() as { startMicros: number; timeZone?: string } };
      }
      const isDeferred = given(deferred) ? true : undefined, periodOf = optional<WrittenPeriod>(period);
      return (nowMicros, sampling) => {
        const period = periodOf && begun(periodOf(sampling), nowMicros());
        if (rule.kind !== "timer") return { ...rule, isDeferred, period };
        if (rule.startMicros !== undefined) return { ...rule, startMicros: rule.startMicros, isDeferred, period };
        const { startMicros = Number(nowMicros()), timeZone } = period ?? {};
        return { ...rule, startMicros, timeZone, isDeferred, period };
      };
    },
    refreshPeriod_length(_period, _open, _length, length, zone, delay, _close): WrittenPeriod {
      const period = {
        length: unitCount(length, 1, PERIOD_UNITS),
        timeZone: optional<string>(zone),
        delay: optional<UnitCount>(delay),
      };
      checkLength(period.length, at(length));
      if (period.delay !== undefined && microsIn(period.delay) >= microsIn(period.length)) {
        const found = `${intervalText(period.delay)} with LENGTH ${intervalText(period.length)}`;
        throw new SqlError(
          `DELAY has to be shorter than LENGTH: found ${found}`,
          at(delay.child(0).child(1)),
          SQLSTATE.invalidParameter,
        );
      }
      return () => period;
    },
    refreshPeriod_sample(period, _open, _sample, _by, _interval, _close): WrittenPeriod {
      const place = at(period);
      return (sampling) => periodOfSamples(sampling, place);
    },
    periodZone: (_time, _zone, zone): string => zoneName(zone),
    periodDelay: (_delay, interval): UnitCount => unitCount(interval, 1, PERIOD_UNITS),
    refreshKind_immediate: (_immediate): WrittenRule => ({ kind: "immediate" }),
    refreshKind_manual: (_manual): WrittenRule => ({ kind: "manual" }),
    refreshKind_every: (_every, interval): WrittenRule => ({ kind: "timer", every: unitCount(interval) }),
    refreshStart(_start, time, _time, _zone, zone) {
      const startMicros = microsOf(time);
      return { startMicros: Number(startMicros), timeZone: given(zone) ? zoneName(zone.child(0)) : undefined };
    },
  },
};

function zoneName(node: Node): string {
  const { text } = token(node);
  if (zoneOf(text) !== undefined) return text;
  throw new SqlError(`there is no time zone ${text}`, at(node), SQLSTATE.invalidParameter);
}

/** PERIOD (SAMPLE BY INTERVAL). `at`: of the clause. */
function periodOfSamples(
  { count, unit: letter, timeZone, offset }: Sampled,
  at: number,
): Omit<RefreshPeriod, "startMicros"> {
  const unit = UNITS[letter];
  if (unit === undefined || !PERIOD_UNITS.includes(letter)) {
    throw new SqlError(
      `PERIOD (SAMPLE BY INTERVAL) needs SAMPLE BY with ${listed(PERIOD_UNITS)}: found ${count}${letter}`,
      at,
      SQLSTATE.invalidParameter,
    );
  }
  if (offset !== "0") {
    throw new SqlError(
      "PERIOD (SAMPLE BY INTERVAL) needs SAMPLE BY without an offset: found WITH OFFSET",
      at,
      SQLSTATE.invalidParameter,
    );
  }
  const length = { count, unit };
  checkLength(length, at);
  return { length, timeZone: timeZone === "" ? undefined : timeZone };
}

function checkLength(length: UnitCount, at: number): void {
  if (microsIn(length) <= microsIn({ count: 1, unit: "DAY" })) return;
  throw new SqlError(`a period has at most 24 hours: found ${intervalText(length)}`, at, SQLSTATE.invalidParameter);
}

/** With the start of the period that has this time. */
function begun(period: Omit<RefreshPeriod, "startMicros">, nowMicros: bigint): RefreshPeriod {
  const { timeZone, length } = period, zone = timeZone === undefined ? undefined : zoneOf(timeZone);
  const local = nowMicros + BigInt(zone?.offsetAt(Number(nowMicros / 1_000_000n)) ?? 0) * 1_000_000n;
  return { ...period, startMicros: Number(floorDivide(local, microsIn(length)) * microsIn(length)) };
}

/** Not of months and years. */
export function microsIn({ count, unit }: UnitCount): bigint {
  return BigInt(count) * UNIT_NANOS[letterOf(unit)]! / 1000n;
}

/** Reads the text of a time. */
export function microsOf(node: Node): bigint {
  const { text } = token(node), micros = MICROS.parse(text);
  if (typeof micros === "bigint") return micros;
  throw new SqlError(
    `'${text}' is no time: expected one such as '2024-01-31T12:00'`,
    at(node),
    SQLSTATE.invalidParameter,
  );
}

/** Reads an interval such as 15m. `least`: the least number. `letters`: of the units that it may have. */
export function unitCount(node: Node, least = 1, letters = INTERVAL_UNITS): UnitCount {
  const { text } = token(node), [, digits = "", letter = ""] = /^(\d+)(\w*)$/.exec(text) ?? [];
  const unit = UNITS[letter], count = Number(digits);
  if (unit === undefined || !letters.includes(letter) || digits === "" || count < least || count >= 2 ** 31) {
    throw invalidInterval(text, letters, at(node));
  }
  return { count, unit };
}

const LIMIT_UNITS = "hdwMy";

/** Reads the interval of REFRESH LIMIT from its number and the word after it, as in 3 days. 0 is no limit. */
export function limitOfWords(number: Node, word: Node): UnitCount {
  const digits = token(number).text, unit = token(word).text.toUpperCase().replace(/S$/, ""), count = Number(digits);
  const isKnown = [...LIMIT_UNITS].some((letter) => UNITS[letter] === unit);
  if (!isKnown || !/^\d+$/.test(digits) || count >= 2 ** 31) {
    throw invalidInterval(`${digits} ${token(word).text}`, LIMIT_UNITS, isKnown ? at(number) : at(word));
  }
  return { count, unit };
}

function invalidInterval(text: string, letters: string, at: number): SqlError {
  const message = `invalid interval ${text}: expected a number of ${listed(letters)}, as in 15${letters[0]}`;
  return new SqlError(message, at, SQLSTATE.invalidParameter);
}

/** Letters of units, as in "m, h or d". */
function listed(letters: string): string {
  return `${[...letters.slice(0, -1)].join(", ")} or ${letters.at(-1)}`;
}

/** The rule as CREATE MATERIALIZED VIEW has it. */
function refreshText(rule: RefreshRule): string {
  const deferred = rule.isDeferred ? " DEFERRED" : "", { period } = rule;
  const kind = rule.kind === "timer" ? `EVERY ${intervalText(rule.every)}` : rule.kind.toUpperCase();
  // Without START, the timer begins with a period.
  const isOfPeriod = rule.kind === "timer" && rule.startMicros === period?.startMicros &&
    rule.timeZone === period.timeZone;
  const start = rule.kind === "timer" && !isOfPeriod
    ? ` START '${MICROS.format(BigInt(rule.startMicros))}'${zoneText(rule.timeZone)}`
    : "";
  return `REFRESH ${kind}${deferred}${start}${period === undefined ? "" : periodText(period)}`;
}

function periodText({ length, timeZone, delay }: RefreshPeriod): string {
  const after = delay === undefined ? "" : ` DELAY ${intervalText(delay)}`;
  return ` PERIOD (LENGTH ${intervalText(length)}${zoneText(timeZone)}${after})`;
}

function zoneText(timeZone: string | undefined): string {
  return timeZone === undefined ? "" : ` TIME ZONE '${timeZone}'`;
}

function intervalText({ count, unit }: UnitCount): string {
  return `${count}${letterOf(unit)}`;
}

/** The letter of a unit, as in SAMPLE BY. */
export function letterOf(unit: string): string {
  return Object.keys(UNITS).find((letter) => UNITS[letter] === unit)!;
}

/** A statement that makes the same view. */
export function createMaterializedText(
  { name, partitionBy, ttl }: { name: string; partitionBy: string; ttl?: UnitCount },
  { base, text, refresh }: Materialized,
): string {
  const time = ttl === undefined ? "" : ` TTL ${ttl.count} ${ttl.unit}${ttl.count === 1 ? "" : "S"}`;
  return `CREATE MATERIALIZED VIEW '${name}' WITH BASE '${base}' ${
    refreshText(refresh)
  } AS (\n${text}\n) PARTITION BY ${partitionBy}${time};`;
}
