/** Logs client errors: one line each, at a limited rate so that clients cannot flood the log. */
import { formatAddress } from "../config/mod.ts";
import { SqlError } from "../errors.ts";
import { type Logger, logger } from "./logger.ts";

export interface RefusedStatement {
  text: string;
  /** The user who sent it. */
  user: string;
  error: unknown;
}

/** The logger of a wire. */
export interface WireLogger extends Logger {
  refused(statement: RefusedStatement): void;
  /** Logs a client that is refused or disconnected. */
  clientRefused(address: Deno.Addr, reason: string): void;
}

export function wireLogger(name: string): WireLogger {
  const log = logger(name);
  const statements = new LimitedLines((line) => log.info(line), "statements were refused");
  const clients = new LimitedLines((line) => log.info(line), "clients were disconnected or refused");
  return Object.assign(log, {
    refused: (statement: RefusedStatement) => statements.add(() => refusedLine(statement)),
    clientRefused: (address: Deno.Addr, reason: string) =>
      clients.add(() => `turned away [client=${shownAddress(address)}, msg=${shownText(reason)}]`),
  });
}

/** True for lines about refused statements, which have level INFO because they are client errors. */
export const isRefusal = (message: string): boolean => message.startsWith(REFUSAL);
const REFUSAL = "err [";

export function refusedLine({ text, user, error }: RefusedStatement): string {
  const message = error instanceof Error ? error.message : String(error);
  const place = error instanceof SqlError ? `, pos=${error.position}, state=${error.sqlState}` : "";
  const shown = shownMessage(message, text);
  return `${REFUSAL}sql=\`${shownText(text)}\`, principal=${shownText(user)}, msg=${shown}${place}]`;
}

export function shownAddress(address: Deno.Addr): string {
  return "hostname" in address ? formatAddress(address) : address.transport;
}

/** Maximum number of lines per second. Further ones are only counted. */
const LINES_MAX = 10;
const SECOND_MS = 1000;

export class LimitedLines {
  #sinceMs = -Infinity;
  #written = 0;
  #skipped = 0;

  constructor(
    private readonly write: (line: string) => void,
    /** Text after the count in the summary. */
    private readonly what: string,
    private readonly nowMs = () => performance.now(),
  ) {}

  add(line: () => string): void {
    if (this.nowMs() - this.#sinceMs >= SECOND_MS) {
      this.#writeSkipped();
      [this.#sinceMs, this.#written] = [this.nowMs(), 0];
    }
    if (this.#written === LINES_MAX) {
      if (this.#skipped++ === 0) Deno.unrefTimer(setTimeout(() => this.#writeSkipped(), SECOND_MS));
      return;
    }
    this.#written++;
    this.write(line());
  }

  #writeSkipped(): void {
    if (this.#skipped > 0) this.write(`${this.#skipped} more ${this.what} in a second`);
    this.#skipped = 0;
  }
}

const SHOWN_LENGTH_MAX = 1000;
/** Longer texts are truncated to this length before secrets are searched, so secrets after it are not shown either. */
const SEARCHED_LENGTH_MAX = 65_536;

/**
 * Text after these words must not be logged. Some of them occur only in statements of other servers. Each space can be matched in one way
 * only: statements may have very many.
 */
const SECRET =
  /(\b(?:(?:with\s+)?password|passwd|secret|secret_key|token|type\s+rest|identified\s+by)\b\s*(?:(?:=|:|to\b)\s*)?)(?:'((?:[^']|'')*)(?:'|$)|"([^"]*)(?:"|$)|(?=[^\s'";])(?<=\bwith\s+password\s+)([^\s'";]+))/gi;

/** A statement as one line for the log: shortened, control characters escaped, secrets replaced by `'****'`. */
export function shownText(text: string): string {
  return inOneLine(withoutSecrets(text.slice(0, SEARCHED_LENGTH_MAX)));
}

/** A statement with its secrets replaced by `'****'`. */
export function withoutSecrets(text: string): string {
  return text.replace(SECRET, "$1'****'");
}

/** An error message about a statement, without the statement's secrets. */
export function shownMessage(message: string, text: string): string {
  let shown = message;
  for (const [, , single, double, bare] of text.slice(0, SEARCHED_LENGTH_MAX).matchAll(SECRET)) {
    shown = shown.replaceAll(single || double || bare || "****", "****");
  }
  return inOneLine(shown);
}

function inOneLine(text: string): string {
  // Do not split a surrogate pair.
  const cut = text.length > SHOWN_LENGTH_MAX
    ? `${text.slice(0, SHOWN_LENGTH_MAX).replace(/[\ud800-\udbff]$/, "")}…`
    : text;
  return cut.replace(CONTROL, escaped);
}

// deno-lint-ignore no-control-regex -- line ends would begin lines of their own, the others steer terminals
const CONTROL = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/g;
const SHORT_ESCAPES: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const escaped = (control: string) =>
  SHORT_ESCAPES[control] ?? `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`;
