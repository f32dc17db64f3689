import type { SessionSettings } from "./session-settings.ts";

/** The work that a connection waits for, as far as a CancelRequest can end it: at most one at a time. */
export class Waits {
  isRunning = false;
  private abort = new AbortController();

  constructor(private readonly settings: SessionSettings) {}

  get signal(): AbortSignal {
    return this.abort.signal;
  }

  get options(): { signal: AbortSignal; timeoutMs: number } {
    return { signal: this.abort.signal, timeoutMs: this.settings.statementTimeoutMs };
  }

  /** Does nothing if no work is running. */
  cancel(): void {
    if (this.isRunning) this.abort.abort();
  }

  begin(): void {
    this.isRunning = true;
  }

  end(): void {
    this.isRunning = false;
    if (this.abort.signal.aborted) this.abort = new AbortController();
  }

  async during<T>(work: Promise<T>): Promise<T> {
    this.begin();
    try {
      return await work;
    } finally {
      this.end();
    }
  }
}
