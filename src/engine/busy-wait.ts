/**
 * Busy waiting: a thread that has done a piece of work looks for the next one for some microseconds before it sleeps, because a core of
 * the processor takes longer to wake up than a small query takes. It does so only while the next piece usually comes within that time.
 */

/** After a look that found nothing, at most this many pieces of work pass until the next look. */
const SKIPPED_MAX = 63;

export class BusyWait {
  /** How many pieces of work pass after a look that found nothing, and how many of them are left. */
  #skips = 0;
  #skipsLeft = 0;

  /** @param micros how long to look; 0: not at all */
  constructor(private readonly micros: number) {}

  /** To be asked once after each piece of work. False if the thread shall sleep at once. */
  isDue(): boolean {
    if (this.micros === 0) return false;
    if (this.#skipsLeft === 0) return true;
    this.#skipsLeft--;
    return false;
  }

  /** Looks until `hasCome` or until the time is over. Returns whether something has come. */
  look(hasCome: () => boolean): boolean {
    const untilMs = performance.now() + this.micros / 1000;
    let found = hasCome();
    while (!found && performance.now() < untilMs) found = hasCome();
    this.ended(found);
    return found;
  }

  /** How a look ended that another one has made. */
  ended(found: boolean): void {
    // Work that takes longer to come is not worth the processor's time. A piece that comes soon may do so by chance.
    this.#skips = this.#skipsLeft = found ? this.#skips >> 1 : Math.min(2 * this.#skips + 1, SKIPPED_MAX);
  }
}
