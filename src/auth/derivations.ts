/** Limits the number of concurrent key derivations, which take tens of milliseconds each. */

/** Too many derivations are waiting; the password was not checked. */
export class TooManyDerivations extends Error {
  override readonly name = "TooManyDerivations";
  constructor() {
    super("too many passwords are being checked: try again later");
  }
}

export class Derivations {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly atOnceMax = 2, private readonly waitingMax = 64) {}

  /** @throws {TooManyDerivations} */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.running >= this.atOnceMax) {
      if (this.waiting.length >= this.waitingMax) throw new TooManyDerivations();
      // A derivation that ends hands its slot to this one.
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    } else this.running++;
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next === undefined) this.running--;
      else next();
    }
  }
}
