/** What clients get wrong, for the log: a line each, and few enough that nobody floods it with them. */
import { formatAddress } from "../config/mod.ts";
import { SqlError } from "../errors.ts";
import { type Logger, logger } from "./logger.ts";

export interface RefusedStatement {
  text: string;
  /** Who sent it. */
  user: string;
  error: unknown;
}

/** What a wire logs with. */
export interface WireLogger extends Logger {
  refused(statement: RefusedStatement): void;
  /** A client that is not let in, or has to leave. */
  turnedAway(address: Deno.Addr, reason: string): void;
}

export function wireLogger(name: string): WireLogger {
  const log = logger(name);
  const statements = new FewLines((line) => log.info(line), "statements were refused");
  const clients = new FewLines((line) => log.info(line), "clients were turned away");
  return Object.assign(log, {
    refused: (statement: RefusedStatement) => statements.tell(() => refusedLine(statement)),
    turnedAway: (address: Deno.Addr, reason: string) =>
      clients.tell(() => `turned away [client=${shownAddress(address)}, msg=${shownText(reason)}]`),
  });
}

export function refusedLine({ text, user, error }: RefusedStatement): string {
  const message = error instanceof Error ? error.message : String(error);
  const place = error instanceof SqlError ? `, pos=${error.position}, state=${error.sqlState}` : "";
  const shown = shownMessage(message, text);
  return `err [sql=\`${shownText(text)}\`, principal=${shownText(user)}, msg=${shown}${place}]`;
}

export function shownAddress(address: Deno.Addr): string {
  return "hostname" in address ? formatAddress(address) : address.transport;
}

/** In a second; the others are counted. */
const LINES_MAX = 10;
const SECOND_MS = 1000;

export class FewLines {
  #sinceMs = -Infinity;
  #told = 0;
  #untold = 0;

  constructor(
    private readonly write: (line: string) => void,
    /** What the lines tell of, behind a count. */
    private readonly what: string,
    private readonly nowMs = () => performance.now(),
  ) {}

  tell(line: () => string): void {
    if (this.nowMs() - this.#sinceMs >= SECOND_MS) {
      this.#tellUntold();
      [this.#sinceMs, this.#told] = [this.nowMs(), 0];
    }
    if (this.#told === LINES_MAX) {
      if (this.#untold++ === 0) Deno.unrefTimer(setTimeout(() => this.#tellUntold(), SECOND_MS));
      return;
    }
    this.#told++;
    this.write(line());
  }

  #tellUntold(): void {
    if (this.#untold > 0) this.write(`${this.#untold} more ${this.what} in a second`);
    this.#untold = 0;
  }
}

const SHOWN_LENGTH_MAX = 1000;
/** Looked through for secrets: where the text is cut, one may be cut too. */
const SEARCHED_LENGTH_MAX = 65_536;

/** What is written in quotes behind these words of other servers' statements is not for the log. */
const SECRET =
  /(\b(?:password|passwd|secret|secret_key|token|identified\s+by)\b\s*(?:=|:|to\b)?\s*)(?:'((?:[^']|'')*)(?:'|$)|"([^"]*)(?:"|$))/gi;

/** A statement in one line of the log: cut, controls as their escapes, `'****'` for secrets. */
export function shownText(text: string): string {
  return inOneLine(text.slice(0, SEARCHED_LENGTH_MAX).replace(SECRET, "$1'****'"));
}

/** A message about a statement, without the statement's secrets. */
export function shownMessage(message: string, text: string): string {
  let shown = message;
  for (const [, , single, double] of text.slice(0, SEARCHED_LENGTH_MAX).matchAll(SECRET)) {
    shown = shown.replaceAll(single || double || "****", "****");
  }
  return inOneLine(shown);
}

function inOneLine(text: string): string {
  // A pair of surrogates is not torn.
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
