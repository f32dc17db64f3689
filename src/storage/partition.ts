/** Partitions of time. Bounds and names are computed once for each batch, so bigint is fast enough. */
import type { PartitionUnit } from "../sql/plan.ts";

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
      const date = new Date(Number(floorDiv(us, 1000n)));
      const year = date.getUTCFullYear();
      if (unit === "YEAR") return [utcMicros(year, 0), utcMicros(year + 1, 0)];
      const month = date.getUTCMonth();
      return [utcMicros(year, month), utcMicros(year, month + 1)];
    }
  }
}

function stepOf(us: bigint, step: bigint, origin: bigint): [bigint, bigint] {
  const start = floorDiv(us - origin, step) * step + origin;
  return [start, start + step];
}

function utcMicros(year: number, month: number): bigint {
  return BigInt(Date.UTC(year, month, 1)) * 1000n;
}

function floorDiv(a: bigint, b: bigint): bigint {
  const q = a / b;
  return a % b < 0n ? q - 1n : q;
}

/** "2024-03-01", "2024-03-01T05", "2024-W09", "2024-03", "2024", or "default" without partitions. */
export function partitionName(start: bigint, unit: PartitionUnit, ticksPerMicro: bigint): string {
  if (unit === "NONE") return "default";
  const date = new Date(Number(floorDiv(start, 1000n * ticksPerMicro)));
  const text = date.toISOString();
  switch (unit) {
    case "HOUR":
      return text.slice(0, 13);
    case "DAY":
      return text.slice(0, 10);
    case "MONTH":
      return text.slice(0, 7);
    case "YEAR":
      return text.slice(0, 4);
    default: {
      // The week's Thursday lies in the ISO week's year.
      const thursday = new Date(date.getTime() + 3 * 86_400_000);
      const year = thursday.getUTCFullYear();
      const week = 1 + Math.floor((thursday.getTime() - Date.UTC(year, 0, 1)) / (7 * 86_400_000));
      return `${year}-W${String(week).padStart(2, "0")}`;
    }
  }
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
  const date = new Date(Number(floorDiv(us, 1000n)));
  const months = unit === "YEAR" ? 12 * count : count;
  const monthStart = utcMicros(date.getUTCFullYear(), date.getUTCMonth());
  // If the earlier month lacks the day, use its last day.
  const earlier = utcMicros(date.getUTCFullYear(), date.getUTCMonth() - months);
  const next = utcMicros(date.getUTCFullYear(), date.getUTCMonth() - months + 1);
  const back = earlier + (us - monthStart);
  return (back < next ? back : next - 1n) * ticksPerMicro;
}
