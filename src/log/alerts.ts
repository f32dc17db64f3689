/** The writer that sends CRITICAL messages to Alertmanagers. */
import { formatAddress } from "../config/mod.ts";
import { AlertQueue } from "./alert-queue.ts";
import { askDirectly } from "./direct.ts";
import type { AlertTemplate } from "./alert-template.ts";
import { logger } from "./logger.ts";
import type { Output, QueuedLine } from "./queue.ts";

export interface AlertTarget {
  hostname: string;
  port: number;
}

export interface AlertSettings {
  targets: AlertTarget[];
  template: AlertTemplate;
  /** Longer messages are truncated in alerts. */
  messageBytesMax: number;
  queuePath: string;
  queueBytesMax: number;
  /** Pause between two attempts with the same target. */
  reconnectDelayMs: number;
  /** Index of the target to try first. */
  firstTarget: number;
  post?: (target: AlertTarget, body: string) => Promise<number>;
  pause?: (timeMs: number) => Promise<void>;
}

/** Maximum pause between attempts with an alert that is refused because of its contents. */
const REFUSED_DELAY_MAX_MS = 30_000;
/** Lower bound of the pause, to avoid a busy loop with a delay of zero. */
const RECONNECT_DELAY_MIN_MS = 10;
/** Longer timeouts overflow the timer, which would then fire immediately. */
const TIMER_MAX_MS = 2 ** 31 - 1;
/** Interval at which the log repeats that alerts cannot be delivered. */
const REMINDER_MS = 60_000;
const POST_TIMEOUT_MS = 10_000;
/** Time limit for sending the rest of the queue when the process ends. */
const LAST_WORDS_MS = 1_000;
/** Available since 0.16; version 0.27 removed the first API. */
const PATH = "/api/v2/alerts";

export class AlertOutput implements Output {
  readonly #queue: AlertQueue;
  readonly #log = logger("alert-writer");
  #target: number;
  #sending: Promise<void> | undefined;
  #wake: (() => void) | undefined;
  #closed = false;
  /** True if the queue could not be written and this was logged. */
  #isFaulty = false;
  #lastMs = 0;

  constructor(readonly settings: AlertSettings) {
    this.#queue = new AlertQueue(settings.queuePath, settings.queueBytesMax);
    this.#target = settings.firstTarget;
    if (this.#queue.length > 0) this.#start();
  }

  write(lines: QueuedLine[]): Promise<void> {
    for (const { text, timeMicros } of lines) {
      // Alertmanager merges alerts with equal labels. Only the time in milliseconds distinguishes two, so it must be
      // unique.
      this.#lastMs = Math.max(Math.floor(timeMicros / 1000), this.#lastMs + 1);
      const message = text.trimEnd().slice(0, this.settings.messageBytesMax);
      const lost = this.#queue.push(this.settings.template.fill(message, Math.max(timeMicros, this.#lastMs * 1000)));
      const { fault } = this.#queue;
      if (fault && !this.#isFaulty) this.#log.error(`alerts wait in memory only: ${fault.message}`);
      this.#isFaulty = fault !== undefined;
      if (lost > 0) this.#log.error(`the ${lost} oldest alerts were dropped: ${this.settings.queuePath} is full`);
    }
    this.#start();
    return Promise.resolve();
  }

  #start(): void {
    this.#sending ??= this.#send();
  }

  /** Sends until the queue is empty. An alert leaves the queue when a target has answered 2xx. */
  async #send(): Promise<void> {
    // Start after `#sending` is set: it is cleared in the same turn in which the queue is found empty.
    await Promise.resolve();
    let failedRounds = 0;
    let toldMs = 0;
    while (!this.#closed && this.#queue.head !== undefined) {
      const outcome = await this.#offerToAll(this.#queue.head, failedRounds === 0);
      if (outcome === "taken") {
        if (failedRounds > 0) this.#log.info(`alerts are delivered again, ${this.#queue.length - 1} are waiting`);
        failedRounds = 0;
        this.#queue.shift();
        continue;
      }
      // The target refused the contents: continue with the other alerts.
      if (outcome === "refused") this.#queue.rotate();
      failedRounds++;
      if (failedRounds === 1 || performance.now() - toldMs > REMINDER_MS) {
        toldMs = performance.now();
        this.#log.error(`no target accepts alerts: ${this.#queue.length} are waiting in ${this.settings.queuePath}`);
      }
      const reconnectDelayMs = Math.min(Math.max(RECONNECT_DELAY_MIN_MS, this.settings.reconnectDelayMs), TIMER_MAX_MS);
      const delayMs = outcome === "refused"
        ? Math.min(REFUSED_DELAY_MAX_MS, reconnectDelayMs * 2 ** Math.min(failedRounds, 16))
        : reconnectDelayMs;
      await (this.settings.pause?.(delayMs) ?? this.#pause(delayMs));
    }
    this.#sending = undefined;
  }

  async #offerToAll(body: string, tells: boolean): Promise<"taken" | "refused" | "unreachable"> {
    const { targets } = this.settings;
    let refused = false;
    for (let attempt = 0; attempt < targets.length; attempt++) {
      const target = targets[this.#target]!;
      let fault: string;
      try {
        const status = await (this.settings.post ?? post)(target, body);
        if (status >= 200 && status < 300) return "taken";
        fault = `status ${status}`;
        refused ||= status >= 400 && status < 500;
      } catch (error) {
        fault = (error as Error).message;
      }
      const next = (this.#target + 1) % targets.length;
      if (tells && targets.length > 1) {
        this.#log.info(`failing over from ${formatAddress(target)} to ${formatAddress(targets[next]!)}: ${fault}`);
      } else if (tells) this.#log.info(`${formatAddress(target)} did not accept an alert: ${fault}`);
      this.#target = next;
    }
    return refused ? "refused" : "unreachable";
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, delayMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Alerts that are not delivered within a second stay on disk for the next start. */
  async close(): Promise<void> {
    if (this.#sending) {
      const lastWords = new Promise<void>((resolve) => setTimeout(resolve, LAST_WORDS_MS));
      this.#wake?.();
      await Promise.race([this.#sending, lastWords]);
    }
    this.#closed = true;
    this.#wake?.();
  }
}

function post(target: AlertTarget, body: string): Promise<number> {
  return askDirectly(target, {
    method: "POST",
    path: PATH,
    headers: {
      host: formatAddress(target),
      accept: "*/*",
      "content-type": "application/json",
      "user-agent": "Sundial/LogAlert",
    },
    body,
    timeoutMs: POST_TIMEOUT_MS,
  });
}
