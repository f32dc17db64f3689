/** When a materialized view is refreshed, as CREATE and ALTER MATERIALIZED VIEW have it. */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import { typeOf } from "../../types/mod.ts";
import { zoneOf } from "../../types/zone.ts";
import type { Materialized, RefreshRule, UnitCount } from "../plan.ts";
import { at, given, type Node, optional, token } from "../tree-nodes.ts";
import type { Form } from "./statement.ts";

const MICROS = typeOf("TIMESTAMP").text;

/** As written: START is optional. */
type WrittenRule =
  | Exclude<RefreshRule, { kind: "timer" }>
  | Omit<Extract<RefreshRule, { kind: "timer" }>, "startMicros"> & { readonly startMicros?: number };

/** `nowMicros`: the start without START. */
export type WrittenRefresh = (nowMicros: () => bigint) => RefreshRule;

/** By the letters of durations, as in SAMPLE BY. */
const UNITS: Readonly<Record<string, string>> = {
  m: "MINUTE",
  h: "HOUR",
  d: "DAY",
  w: "WEEK",
  M: "MONTH",
  y: "YEAR",
};

export const refreshParts: Pick<Form, "grammar" | "actions"> = {
  grammar: String.raw`
  refreshRule = "REFRESH" refreshKind? "DEFERRED"? refreshStart? refreshPeriod?
  refreshPeriod = "PERIOD" "(" (~")" any)* ")"
  refreshKind = "IMMEDIATE"                              -- immediate
              | "MANUAL"                                 -- manual
              | "EVERY" anyNumber                        -- every
  refreshStart = "START" "<string>" ("TIME" "ZONE" "<string>")?`,
  actions: {
    refreshRule(_refresh, kind, deferred, start, period): WrittenRefresh {
      if (given(period)) throw notSupported("PERIOD of REFRESH", at(period));
      let rule = optional<WrittenRule>(kind) ?? { kind: "immediate" };
      if (given(start)) {
        if (rule.kind !== "timer") throw new SqlError("START belongs to REFRESH EVERY", at(start), SQLSTATE.syntax);
        rule = { ...rule, ...start.child(0).tree() as { startMicros: number; timeZone?: string } };
      }
      const isDeferred = given(deferred) ? true : undefined;
      return (nowMicros) =>
        rule.kind === "timer"
          ? { ...rule, startMicros: rule.startMicros ?? Number(nowMicros()), isDeferred }
          : { ...rule, isDeferred };
    },
    refreshKind_immediate: (_immediate): WrittenRule => ({ kind: "immediate" }),
    refreshKind_manual: (_manual): WrittenRule => ({ kind: "manual" }),
    refreshKind_every: (_every, interval): WrittenRule => ({ kind: "timer", every: unitCount(interval) }),
    refreshStart(_start, time, _time, _zone, zone) {
      const startMicros = microsOf(time);
      const timeZone = given(zone) ? token(zone.child(0)).text : undefined;
      if (timeZone !== undefined && zoneOf(timeZone) === undefined) {
        throw new SqlError(`there is no time zone ${timeZone}`, at(zone.child(0)), SQLSTATE.invalidParameter);
      }
      return { startMicros: Number(startMicros), timeZone };
    },
  },
};

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

/** Reads an interval such as 15m. `least`: the least number. */
export function unitCount(node: Node, least = 1): UnitCount {
  const { text } = token(node), [, digits = "", letter = ""] = /^(\d+)(\w*)$/.exec(text) ?? [];
  const unit = UNITS[letter], count = Number(digits);
  if (unit === undefined || digits === "" || count < least || count >= 2 ** 31) {
    throw new SqlError(
      `invalid interval ${text}: expected a number of m, h, d, w, M or y, as in 15m`,
      at(node),
      SQLSTATE.invalidParameter,
    );
  }
  return { count, unit };
}

/** The rule as CREATE MATERIALIZED VIEW has it. */
function refreshText(rule: RefreshRule): string {
  const deferred = rule.isDeferred ? " DEFERRED" : "";
  if (rule.kind !== "timer") return `REFRESH ${rule.kind.toUpperCase()}${deferred}`;
  const { every, startMicros, timeZone } = rule, zone = timeZone === undefined ? "" : ` TIME ZONE '${timeZone}'`;
  return `REFRESH EVERY ${intervalText(every)}${deferred} START '${MICROS.format(BigInt(startMicros))}'${zone}`;
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
