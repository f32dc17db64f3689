/** Partitions of time. Bounds and names are computed once for each batch, so bigint is fast enough. */
import type { PartitionUnit } from "../sql/plan.ts";
import { isoWeek } from "../types/format/pattern.ts";
import { civilOfDay } from "../types/format/time.ts";
import { dayOfCivil } from "../types/parse/time.ts";

const HOUR_US = 3_600_000_000n;
const DAY_US = 24n * HOUR_US;
/** 1970-01-05 was a Monday. */
const MONDAY_US = 4n * DAY_US;

export interface PartitionRange {
  /** First instant, in the column's unit. It identifies the partition. */
  start: bigint;
  /** First instant after it. */
  end: bigint;
}

const EVERYTHING: PartitionRange = { start: 0n, end: 2n ** 63n };

/** `ticksPerMicro` is 1n for TIMESTAMP and 1000n for TIMESTAMP_NS. */
export function partitionOf(timestamp: bigint, unit: PartitionUnit, ticksPerMicro: bigint): PartitionRange {
  if (unit === "NONE") return EVERYTHING;
  const us = floorDiv(timestamp, ticksPerMicro);
  const [start, end] = rangeOf(us, unit);
  return { start: start * ticksPerMicro, end: end * ticksPerMicro };
}

function rangeOf(us: bigint, unit: PartitionUnit): [bigint, bigint] {
  switch (unit) {
    case "HOUR":
      return stepOf(us, HOUR_US, 0n);
    case "DAY":
      return stepOf(us, DAY_US, 0n);
    case "WEEK":
      return stepOf(us, 7n * DAY_US, MONDAY_US);
    default: {
      const month = monthOf(us);
      if (unit === "MONTH") return [startOfMonth(month), startOfMonth(month + 1)];
      const january = Math.floor(month / 12) * 12;
      return [startOfMonth(january), startOfMonth(january + 12)];
    }
  }
}

function stepOf(us: bigint, step: bigint, origin: bigint): [bigint, bigint] {
  const start = floorDiv(us - origin, step) * step + origin;
  return [start, start + step];
}

/** Months since January of year 0. Date has fewer years than 64 bits of microseconds. */
function monthOf(us: bigint): number {
  const { year, month } = civilOfDay(dayOf(us));
  return 12 * year + month - 1;
}

function startOfMonth(month: number): bigint {
  const year = Math.floor(month / 12);
  return BigInt(dayOfCivil(year, month - 12 * year + 1, 1)) * DAY_US;
}

function dayOf(us: bigint): number {
  return Number(floorDiv(us, DAY_US));
}

function floorDiv(a: bigint, b: bigint): bigint {
  const q = a / b;
  return a % b < 0n ? q - 1n : q;
}

/** "2024-03-01", "2024-03-01T05", "2024-W09", "2024-03", "2024", or "default" without partitions. */
export function partitionName(start: bigint, unit: PartitionUnit, ticksPerMicro: bigint): string {
  if (unit === "NONE") return "default";
  const us = floorDiv(start, ticksPerMicro), number = dayOf(us), { year, month, day } = civilOfDay(number);
  switch (unit) {
    case "HOUR":
      return `${padded(year, 4)}-${padded(month)}-${padded(day)}T${
        padded(Number((us - BigInt(number) * DAY_US) / HOUR_US))
      }`;
    case "DAY":
      return `${padded(year, 4)}-${padded(month)}-${padded(day)}`;
    case "MONTH":
      return `${padded(year, 4)}-${padded(month)}`;
    case "YEAR":
      return padded(year, 4);
    default: {
      const { year, week } = isoWeek(number);
      return `${padded(year, 4)}-W${padded(week)}`;
    }
  }
}

function padded(value: number, digits = 2): string {
  return (value < 0 ? "-" : "") + String(Math.abs(value)).padStart(digits, "0");
}

/** Returns `timestamp` minus a time to live. */
export function timeBefore(
  timestamp: bigint,
  { count, unit }: { count: number; unit: string },
  ticksPerMicro: bigint,
): bigint {
  const fixed: Record<string, bigint> = { HOUR: HOUR_US, DAY: DAY_US, WEEK: 7n * DAY_US };
  if (unit in fixed) return timestamp - BigInt(count) * fixed[unit] * ticksPerMicro;
  const us = floorDiv(timestamp, ticksPerMicro);
  const month = monthOf(us), earlier = month - (unit === "YEAR" ? 12 * count : count);
  // If the earlier month lacks the day, use its last day.
  const next = startOfMonth(earlier + 1);
  const back = startOfMonth(earlier) + (us - startOfMonth(month));
  return (back < next ? back : next - 1n) * ticksPerMicro;
}
