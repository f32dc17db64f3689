/** The kernels of an operator whose code depends on some facts of a segment. Neighbouring segments mostly have the same ones. */
export class KernelVariants<Variant> {
  /** The facts of the segment. */
  readonly flags: boolean[] = [];
  private count = 0;
  private last?: Variant;
  private readonly known = new Map<string, Variant>();

  /** `make`: the variant for `flags`. */
  constructor(private readonly make: () => Variant) {}

  /** Begins the facts of another segment: as many in each. */
  begin(): void {
    this.count = 0;
  }

  next(flag: boolean): void {
    const k = this.count++;
    if (this.flags[k] === flag) return;
    this.flags[k] = flag;
    this.last = undefined;
  }

  get(): Variant {
    if (this.last !== undefined) return this.last;
    const name = this.flags.join();
    let variant = this.known.get(name);
    if (variant === undefined) this.known.set(name, variant = this.make());
    return this.last = variant;
  }
}
