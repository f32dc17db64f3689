/** Times of statements and of health in a run, and which of them are beyond the bounds. */

/** Bounds for any statement. */
export const BOUNDS = { timeoutMs: 1_000, answerMs: 2_000, healthMs: 20, extraBytes: 200 << 20 };
/** CI machines are shared, so tests allow this multiple of a bound and report the measured values. */
export const SLACK = 5;
/**
 * The multiple of `healthMs` that tests allow at p99: on a busy machine the probe itself and three statements at a time wait for two cores.
 * It finds a main thread that is blocked again and again; `bench --suite bounds` reports the time itself.
 */
const HEALTH_SLACK = 50;

export interface Finding {
  sql: string;
  what: string;
}

/** When a statement ran, by `Date.now`. */
export interface Span {
  sql: string;
  start: number;
  end: number;
}

/** An answer of health: time of the request by `Date.now`, and its duration. */
export interface HealthAnswer {
  start: number;
  ms: number;
  /** How late the timer before the request was: the time that the machine took to give the probe a core. */
  lateMs: number;
}

/** The time between two requests of the probe. */
export const PROBE_PAUSE_MS = 10;

export interface HealthTimes {
  healthP99Ms: number;
  healthMostMs: number;
  /** p99 of how late the probe's timers were. */
  lateP99Ms: number;
}

/**
 * Statements and answers of health that took longer than tests allow. The bounds grow with what other programs take of
 * the machine: as late as the probe's timers are, so late are the threads of the server, and query threads, which have a lower
 * priority, many times as much.
 */
export function timeFindings(runs: readonly Span[], answers: readonly HealthAnswer[]): Finding[] {
  const { healthP99Ms, healthMostMs, lateP99Ms } = healthTimes(answers);
  const business = 1 + lateP99Ms / BOUNDS.healthMs;
  const answerMsMax = BOUNDS.answerMs * SLACK * business;
  const findings = runs.filter(({ start, end }) => end - start > answerMsMax)
    .map(({ sql, start, end }) => ({ sql, what: `${end - start} ms` }));
  const health = `health: p99 ${healthP99Ms.toFixed(1)} ms, worst ${healthMostMs.toFixed(0)} ms`;
  if (healthMostMs > answerMsMax || healthP99Ms > BOUNDS.healthMs * HEALTH_SLACK * business) {
    findings.push({ sql: "", what: health });
  }
  return findings;
}

export function healthTimes(answers: readonly HealthAnswer[]): HealthTimes {
  const health = byTime(answers.map(({ ms }) => ms));
  return {
    healthP99Ms: at(health, 0.99),
    healthMostMs: at(health, 1),
    lateP99Ms: at(byTime(answers.map(({ lateMs }) => lateMs)), 0.99),
  };
}

/**
 * The delays in ascending order. A delay stands for all requests that would have waited with it: one of 10 s among a thousand quick
 * answers is half of the time, not a thousandth.
 */
function byTime(delaysMs: readonly number[]): number[] {
  return delaysMs.flatMap((ms) => {
    const missed = Number.isFinite(ms) ? Math.max(0, Math.ceil(ms / PROBE_PAUSE_MS) - 1) : 0;
    return [ms, ...Array.from({ length: missed }, (_, k) => ms - (k + 1) * PROBE_PAUSE_MS)];
  }).sort((a, b) => a - b);
}

/** The value below which `share` of the values are. */
export const at = (sorted: readonly number[], share: number): number =>
  sorted.length === 0 ? 0 : sorted[Math.floor((sorted.length - 1) * share)];
