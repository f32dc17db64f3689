/** Settings of a session, made by the start-up message and by SET. */
import { SqlError, SQLSTATE } from "../../errors.ts";

/** Parameters of a start-up message that are not settings. */
const NO_SETTINGS = new Set(["user", "database", "options", "replication"]);

/** Limits, because any name can be set. */
const SETTINGS_MAX = 256, LENGTH_MAX = 8_192;

export class SessionSettings {
  /** By lower-case name. */
  readonly values: Map<string, string>;
  /** From the start-up message. RESET restores them. */
  private readonly start: ReadonlyMap<string, string>;
  /**
   * Values that SET LOCAL has replaced, to be restored at the end of the transaction. Undefined if the setting was not
   * set.
   */
  private readonly replaced = new Map<string, string | undefined>();
  statementTimeoutMs = 0;
  /** True if client_min_messages is info or lower: progress of long statements is sent as notices. */
  sendsProgress = false;

  /** Reports a changed setting to the client. */
  report?: (name: string, value: string) => void;
  private reported = "";

  /** @throws {SqlError} for an invalid value. */
  constructor(parameters: ReadonlyMap<string, string> = new Map()) {
    const start = new Map<string, string>();
    // Settings in `options` come first, so that separate parameters take precedence.
    for (const [name, value] of [...optionsOf(parameters.get("options") ?? ""), ...parameters]) {
      const key = name.toLowerCase();
      if (!NO_SETTINGS.has(key) && !key.startsWith("_pq_.")) start.set(key, shown(key, value, 0));
    }
    this.start = start;
    this.values = new Map(start);
    this.follow();
  }

  /** `isLocal`: until `endTransaction`. */
  set(name: string, value: string, { isLocal, at }: { isLocal: boolean; at: number }): void {
    const key = name.toLowerCase();
    if (name.length + value.length > LENGTH_MAX || (this.values.size >= SETTINGS_MAX && !this.values.has(key))) {
      const message = `a session can have at most ${SETTINGS_MAX} settings of ${LENGTH_MAX} characters each`;
      throw new SqlError(message, at, SQLSTATE.programLimitExceeded);
    }
    const before = this.replaced.has(key) ? this.replaced.get(key) : this.values.get(key);
    this.values.set(key, shown(key, value, at));
    if (isLocal) this.replaced.set(key, before);
    else this.replaced.delete(key);
    this.follow();
  }

  /** Restores what `isLocal` has replaced. */
  endTransaction(): void {
    if (this.replaced.size === 0) return;
    for (const [key, value] of this.replaced) {
      if (value === undefined) this.values.delete(key);
      else this.values.set(key, value);
    }
    this.replaced.clear();
    this.follow();
  }

  /** Restores the initial value of a setting, or of all settings without a name. */
  reset(name?: string): void {
    if (name === undefined) return this.resetAll();
    const key = name.toLowerCase(), start = this.start.get(key);
    if (start === undefined) this.values.delete(key);
    else this.values.set(key, start);
    this.replaced.delete(key);
    this.follow();
  }

  private resetAll(): void {
    this.values.clear();
    this.replaced.clear();
    for (const [name, value] of this.start) this.values.set(name, value);
    this.follow();
  }

  /**
   * Computes derived values that are used often, and reports a new `application_name` to the client, as PostgreSQL
   * does.
   */
  private follow(): void {
    const reported = this.values.get(REPORTED) ?? "";
    if (reported !== this.reported) this.report?.(REPORTED, reported);
    this.reported = reported;
    this.statementTimeoutMs = parseTimeoutMs(this.values.get(TIMEOUT) ?? "0", 0);
    this.sendsProgress = /^(?:debug[1-5]?|log|info)$/i.test(this.values.get("client_min_messages") ?? "");
  }
}

const TIMEOUT = "statement_timeout", REPORTED = "application_name";

/** `-c name=value` and `--name=value`; a backslash escapes a blank. */
function optionsOf(options: string): [name: string, value: string][] {
  return [...options.matchAll(/(?:-c\s*|--)([\w.-]+)=((?:\\.|[^\s\\])*)/g)].map(
    ([, name, value]) => [name!.replaceAll("-", "_"), value!.replaceAll(/\\(.)/g, "$1")],
  );
}

/** The value for SHOW. */
function shown(key: string, value: string, at: number): string {
  return key === TIMEOUT ? timeoutText(parseTimeoutMs(value, at)) : value;
}

const UNIT_MS: Record<string, number> = { us: 0.001, ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 };

/** 250, '250ms', '0.5s', '2 min'; 0 means the configured limit. */
function parseTimeoutMs(text: string, at: number): number {
  const match = /^\s*(\d{1,12}(?:\.\d{1,9})?)\s*(?:(us|ms|s|min|h|d)\s*)?$/.exec(text);
  if (match === null) {
    throw new SqlError(
      `invalid statement_timeout '${text}': expected milliseconds`,
      at,
      SQLSTATE.invalidParameter,
    );
  }
  return Math.ceil(Number(match[1]) * UNIT_MS[match[2] ?? "ms"]!);
}

/** In the largest unit without a fraction, like PostgreSQL. */
function timeoutText(ms: number): string {
  if (ms === 0) return "0";
  const unit = ["d", "h", "min", "s"].find((unit) => ms % UNIT_MS[unit]! === 0) ?? "ms";
  return `${ms / UNIT_MS[unit]!}${unit}`;
}
