/** The life of a query worker: takes its mail, helps other workers, does chores, and sleeps. */
import { setImmediate } from "node:timers";
import { BusyWait } from "./busy-wait.ts";
import { MAIL, type Mail, type Mailboxes } from "./mailbox.ts";

export interface Duties {
  /** Entries other than `close`. An error that it throws ends the worker. */
  handle(mail: Mail): void;
  /** Joins an open section of another worker's query, after `onJoin`. Returns false if there is none. */
  help(onJoin: () => void): boolean;
  /** Does a step of some ten milliseconds of work that no query waits for. Returns false if there is none. */
  chore(): boolean;
  /** How long it looks for more mail before it sleeps, in microseconds; 0 by default. */
  busyMicros?: number;
}

/**
 * After this much work without a pause, the thread returns to its event loop for a moment: the runtime ends threads there, and
 * V8 disposes of what was collected.
 */
const TURN_MS = 1000;

/** Resolves when main closes the mailbox. */
export async function serve(mailboxes: Mailboxes, seat: number, duties: Duties): Promise<void> {
  const { handle, help, chore, busyMicros = 0 } = duties;
  const wait = new BusyWait(busyMicros);
  let turnedAt = performance.now(), hadMail = false;
  for (;;) {
    mailboxes.setIdle(seat, true);
    const wakes = mailboxes.wakes(seat);
    const mail = mailboxes.take(seat);
    if (mail !== undefined) {
      if (mail.kind === MAIL.close) return;
      mailboxes.setIdle(seat, false);
      handle(mail);
      chore();
      hadMail = true;
    } else if (!help(() => mailboxes.setIdle(seat, false)) && !chore()) {
      const isBusy = hadMail && wait.isDue();
      hadMail = false;
      const hasMail = isBusy && wait.look(() => mailboxes.wakes(seat) !== wakes);
      if (!hasMail && !mailboxes.sleep(seat, wakes)) turnedAt = 0;
    }
    const now = performance.now();
    if (now - turnedAt < TURN_MS) continue;
    await new Promise<void>((resolve) => void setImmediate(resolve));
    turnedAt = now;
  }
}
