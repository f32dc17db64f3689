/**
 * Buckets of SAMPLE BY and timestamp_floor: a number of units, counted from the epoch (weeks from a Monday, or with an offset from the
 * epoch's Thursday plus the offset), from a given origin (FROM, as local time of the zone), or from the first row; in UTC or in
 * local time of a zone.
 */
import type { Sampling } from "../sql/plan.ts";
import { floorDivide, nanosOf, UNIT_NANOS } from "../types/calendar.ts";
import { civilOfDay } from "../types/format/time.ts";
import { dayOfCivil } from "../types/parse/time.ts";
import { type Zone, zoneOf } from "../types/zone.ts";

/** 1969-12-29, the Monday before the epoch, in days. */
const FIRST_MONDAY_DAY = -3n;
const DAY_NANOS = 86_400_000_000_000n;

/**
 * A bucket of instants [start, end), in the timestamp's unit. When clocks are turned back, several buckets may have the
 * same start.
 */
export interface Bucket {
  /** Identifies the bucket, and is shown in replies. */
  start: bigint;
  /** The first instant after the requested one that may be in another bucket. */
  end: bigint;
}

export class TimeBuckets {
  private readonly unitNanos: bigint;
  private readonly unitsADay: bigint;
  private readonly unitsASecond: bigint;
  private readonly zone: Zone | undefined;
  /** Length of a bucket, or 0n for months and years. */
  private readonly stride: bigint;
  /** Length in months. */
  private readonly months: bigint;
  /** Start of a bucket, in local time of the zone. */
  private readonly origin: bigint;
  /** Offset of months and years from the calendar's. */
  private readonly monthShift: bigint = 0n;
  /**
   * The start of the first bucket, if rows may precede it: they are selected from FROM in UTC, and buckets begin at FROM in local time
   * plus the offset. The first bucket has these rows, too.
   */
  readonly first: bigint | undefined;

  /** `first`: the first row's time, for ALIGN TO FIRST OBSERVATION. */
  constructor(private readonly sampling: Sampling, timeType: string, first: bigint) {
    const { count, unit, align, timeZone, offset, from } = sampling;
    this.unitNanos = nanosOf(timeType);
    this.unitsADay = DAY_NANOS / this.unitNanos;
    this.unitsASecond = 1_000_000_000n / this.unitNanos;
    this.zone = timeZone === "" || align === "first observation" ? undefined : zoneOf(timeZone);
    const nanos = unit === "M" || unit === "y" ? 0n : UNIT_NANOS[unit] * BigInt(count);
    this.stride = nanos === 0n ? 0n : nanos / this.unitNanos;
    this.months = BigInt(count * (unit === "y" ? 12 : 1));
    // Buckets finer than a tick have one tick.
    if (nanos > 0n && this.stride === 0n) this.stride = 1n;
    if (align === "first observation") this.origin = first;
    else if (from !== undefined) {
      this.origin = from + offset;
      const first = this.shownAt(this.origin);
      if (first > from) this.first = first;
    } else if (this.stride === 0n) {
      // A month plus the offset, not a number of days into the month: months differ in length.
      this.origin = 0n;
      this.monthShift = offset;
    } else this.origin = unit === "w" && offset === 0n ? FIRST_MONDAY_DAY * this.unitsADay : offset;
  }

  /** If all buckets have the same length in UTC: bucket k begins at origin + k * stride. */
  get fixed(): { origin: bigint; stride: bigint } | undefined {
    const isFixed = this.zone === undefined && this.stride > 0n && this.first === undefined;
    return isFixed ? { origin: this.origin, stride: this.stride } : undefined;
  }

  /** The bucket of an instant. */
  of(time: bigint): Bucket {
    if (this.first !== undefined && time < this.first) return { start: this.first, end: this.after(this.first) };
    const local = this.toLocal(time);
    const start = this.floor(local);
    const end = this.next(start);
    if (!this.zone) return { start, end };
    // Assumes the zone's offset at `time`; a change of it may put later instants of this range into another bucket.
    const unchanged = time + (end - local);
    return { start: this.startOf(start), end: this.changeBetween(time, unchanged) ?? unchanged };
  }

  /** The start of the bucket after the one that begins at `start`. */
  after(start: bigint): bigint {
    if (!this.zone) return this.next(start);
    const local = this.next(this.floor(this.toLocal(start))), next = this.startOf(local);
    if (next > start && this.startOf(this.floor(this.toLocal(next))) === next) return next;
    // Buckets that begin in skipped hours: the next is that of the instant when they end.
    const shown = this.floor(this.toLocal(this.toUtc(local))), begin = this.startOf(shown);
    return begin > start ? begin : this.startOf(this.next(shown));
  }

  /**
   * The start of a bucket that begins at `local`. In skipped hours: the instant when clocks are put forward. But what is
   * left of a bucket belongs to the one before it if both together are no longer than a bucket.
   */
  private startOf(local: bigint): bigint {
    const utc = this.toUtc(local), skipped = this.toLocal(utc) - local;
    if (skipped === 0n) return utc;
    const change = this.changeBetween(utc - skipped, utc + 1n) ?? utc - skipped;
    const before = this.toUtc(this.floor(this.toLocal(change) - skipped)), end = this.toUtc(this.next(local));
    return end - before <= this.stride ? before : change;
  }

  /** True if starts ascend with the times of [from, to]; not if clocks are turned back into an earlier bucket. */
  ascendBetween(from: bigint, to: bigint): boolean {
    if (this.zone === undefined) return true;
    // Zone rules are looked up for ranges of days; too many lookups would take longer than they save.
    if ((to - from) / this.unitsADay > 40_000n) return false;
    const step = 4n * this.unitsADay;
    for (let low = from; low < to; low += step) {
      const change = this.changeBetween(low, low + step);
      if (change !== undefined && this.of(change - 1n).start > this.of(change).start) return false;
    }
    return true;
  }

  private floor(local: bigint): bigint {
    if (this.stride > 0n) return this.origin + floorDivide(local - this.origin, this.stride) * this.stride;
    const first = this.monthOf(this.origin);
    const start = first + floorDivide(this.monthOf(local - this.monthShift) - first, this.months) * this.months;
    const begin = this.beginInMonth(start);
    return begin > local ? this.beginInMonth(start - this.months) : begin;
  }

  private next(start: bigint): bigint {
    if (this.stride > 0n) return start + this.stride;
    return this.beginInMonth(this.monthOf(start - this.monthShift) + this.months);
  }

  /** Start of a bucket in a month: the origin's day and time, or the last day if the month lacks that day. */
  private beginInMonth(month: bigint): bigint {
    const start = this.startOfMonth(month);
    const intoMonth = this.origin - this.startOfMonth(this.monthOf(this.origin));
    const day = floorDivide(intoMonth, this.unitsADay);
    const lastDay = (this.startOfMonth(month + 1n) - start) / this.unitsADay - 1n;
    return start + (day < lastDay ? day : lastDay) * this.unitsADay + (intoMonth - day * this.unitsADay) +
      this.monthShift;
  }

  /** Months since January of year 0. */
  private monthOf(local: bigint): bigint {
    const { year, month } = civilOfDay(Number(floorDivide(local, this.unitsADay)));
    return BigInt(year * 12 + month - 1);
  }

  private startOfMonth(month: bigint): bigint {
    return BigInt(dayOfCivil(Number(floorDivide(month, 12n)), Number(((month % 12n) + 12n) % 12n) + 1, 1)) *
      this.unitsADay;
  }

  /** The instant when the zone's clocks show what a clock in UTC shows at `time`. */
  shownAt(time: bigint): bigint {
    return this.zone ? this.toUtc(time) : time;
  }

  private toLocal(time: bigint): bigint {
    if (!this.zone) return time;
    return time + BigInt(this.zone.offsetAt(Number(floorDivide(time, this.unitsASecond)))) * this.unitsASecond;
  }

  private toUtc(local: bigint): bigint {
    const second = floorDivide(local, this.unitsASecond);
    return BigInt(this.zone!.toUtc(Number(second))) * this.unitsASecond + (local - second * this.unitsASecond);
  }

  /** The first instant in (from, to) at which the zone's offset changes. */
  private changeBetween(from: bigint, to: bigint): bigint | undefined {
    let low = Number(floorDivide(from, this.unitsASecond)), high = Number(floorDivide(to - 1n, this.unitsASecond));
    const offset = this.zone!.offsetAt(low);
    if (this.zone!.offsetAt(high) === offset) return undefined;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.zone!.offsetAt(middle) === offset) low = middle;
      else high = middle;
    }
    return BigInt(high) * this.unitsASecond;
  }
}
