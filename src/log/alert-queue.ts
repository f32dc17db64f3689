/** Alerts that nobody has taken yet, on disk, so that they outlive the process: a line of JSON for each body. */
export class AlertQueue {
  readonly #bodies: string[] = [];
  #sizeBytes = 0;
  /** Lines at the head of the file that have been taken. */
  #taken = 0;

  /** @throws where the file cannot be written. */
  constructor(readonly path: string, readonly limitBytes: number) {
    for (const line of readLines(path)) this.#add(line);
    this.#rewrite();
  }

  get length(): number {
    return this.#bodies.length;
  }

  get head(): string | undefined {
    return this.#bodies[0];
  }

  /** On disk when it returns; gives the number of oldest alerts that had to make room. */
  push(body: string): number {
    this.#add(body);
    let lost = 0;
    while (this.#sizeBytes > this.limitBytes && this.#bodies.length > 1) {
      this.#sizeBytes -= this.#bodies.shift()!.length;
      lost++;
    }
    if (lost > 0) this.#rewrite();
    else Deno.writeTextFileSync(this.path, JSON.stringify(body) + "\n", { append: true });
    return lost;
  }

  /** The head has been taken. A crash before the file says so sends it again, which receivers recognize. */
  shift(): void {
    this.#sizeBytes -= this.#bodies.shift()!.length;
    this.#taken++;
    if (this.#bodies.length === 0 || this.#taken >= 64) this.#rewrite();
  }

  /** The head goes to the end: it is not to stand in the way of the others. */
  rotate(): void {
    this.#bodies.push(this.#bodies.shift()!);
  }

  #add(body: string): void {
    this.#bodies.push(body);
    this.#sizeBytes += body.length;
  }

  #rewrite(): void {
    const temporary = `${this.path}.new`;
    Deno.writeTextFileSync(temporary, this.#bodies.map((body) => JSON.stringify(body) + "\n").join(""));
    Deno.renameSync(temporary, this.path);
    this.#taken = 0;
  }
}

function readLines(path: string): string[] {
  let text: string;
  try {
    text = Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
  return text.split("\n").flatMap((line) => {
    try {
      return line === "" ? [] : [String(JSON.parse(line))];
    } catch {
      // The last line of a process that was killed while it wrote.
      return [];
    }
  });
}
