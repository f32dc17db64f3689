/**
 * How SAMPLE BY and timestamp_floor cut time: buckets of a number of units, from the epoch (weeks from a Monday), from a
 * given origin, or from the first row; in UTC or by the clocks of a zone.
 */
import { SqlError, SQLSTATE } from "../errors.ts";
import type { Sampling } from "../sql/plan.ts";
import { floorDivide, nanosOf, UNIT_NANOS } from "../types/calendar.ts";
import { civilOfDay } from "../types/format/time.ts";
import { dayOfCivil } from "../types/parse/time.ts";
import { type Zone, zoneOf } from "../types/zone.ts";

/** 1969-12-29, the Monday before the epoch, in days. */
const FIRST_MONDAY_DAY = -3n;
const DAY_NANOS = 86_400_000_000_000n;

/** A bucket of instants [start, end), in the timestamp's unit. With a zone's fold, several of them may have one start. */
export interface Bucket {
  /** The bucket's name: what replies show. */
  start: bigint;
  /** The first instant after the one asked for that may be in another bucket. */
  end: bigint;
}

export class TimeBuckets {
  private readonly unitNanos: bigint;
  private readonly unitsADay: bigint;
  private readonly unitsASecond: bigint;
  private readonly zone: Zone | undefined;
  /** Length of a bucket, or 0n for months and years. */
  private readonly stride: bigint;
  /** Where a bucket begins, on the clocks of the zone. */
  private readonly origin: bigint;

  /** `first`: the first row's time, for ALIGN TO FIRST OBSERVATION. */
  constructor(private readonly sampling: Sampling, timeType: string, first: bigint) {
    const { count, unit, align, timeZone, offset, from } = sampling;
    this.unitNanos = nanosOf(timeType);
    this.unitsADay = DAY_NANOS / this.unitNanos;
    this.unitsASecond = 1_000_000_000n / this.unitNanos;
    this.zone = timeZone === "" || align === "first observation" ? undefined : zoneOf(timeZone);
    const nanos = unit === "M" || unit === "y" ? 0n : UNIT_NANOS[unit] * BigInt(count);
    this.stride = nanos === 0n ? 0n : nanos / this.unitNanos;
    if (nanos > 0n && this.stride === 0n) {
      throw new SqlError(`SAMPLE BY ${count}${unit} is finer than ${timeType}`, 0, SQLSTATE.invalidParameter);
    }
    if (align === "first observation") this.origin = first;
    else if (from !== undefined) this.origin = this.toLocal(from);
    else this.origin = (unit === "w" ? FIRST_MONDAY_DAY * this.unitsADay : 0n) + offset;
  }

  /** Where all buckets have one length in UTC: bucket k begins at origin + k * stride. */
  get fixed(): { origin: bigint; stride: bigint } | undefined {
    return this.zone === undefined && this.stride > 0n ? { origin: this.origin, stride: this.stride } : undefined;
  }

  /** The bucket of an instant. */
  of(time: bigint): Bucket {
    const local = this.toLocal(time);
    const start = this.floor(local);
    const end = this.next(start);
    if (!this.zone) return { start, end };
    const bucket = { start: this.toUtc(start), end: this.toUtc(end) };
    // A change of the clocks may put later instants of this stretch into another bucket.
    const change = this.changeBetween(time, bucket.end);
    return change === undefined ? bucket : { start: bucket.start, end: change };
  }

  /** The start of the bucket after the one that begins at `start`. */
  after(start: bigint): bigint {
    if (!this.zone) return this.next(start);
    const next = this.toUtc(this.next(this.floor(this.toLocal(start))));
    // In the hours that clocks skip, two buckets would begin at once.
    return next > start ? next : this.toUtc(this.next(this.next(this.floor(this.toLocal(start)))));
  }

  private floor(local: bigint): bigint {
    if (this.stride > 0n) return this.origin + floorDivide(local - this.origin, this.stride) * this.stride;
    const { count, unit } = this.sampling;
    const months = BigInt(count * (unit === "y" ? 12 : 1));
    const origin = this.monthOf(this.origin), rest = this.origin - this.startOfMonth(origin);
    let start = origin + floorDivide(this.monthOf(local) - origin, months) * months;
    if (this.startOfMonth(start) + rest > local) start -= months;
    return this.startOfMonth(start) + rest;
  }

  private next(start: bigint): bigint {
    if (this.stride > 0n) return start + this.stride;
    const { count, unit } = this.sampling;
    const month = this.monthOf(start);
    return this.startOfMonth(month + BigInt(count * (unit === "y" ? 12 : 1))) + (start - this.startOfMonth(month));
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
