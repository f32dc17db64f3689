/**
 * Alerts that nobody has taken yet, on disk, so that they outlive the process. Nothing while there is none; else lines of JSON:
 *
 *     {"format":1}       not in format 0
 *     "BODY"             for each
 */
import { ConfigError } from "../errors.ts";

const FORMAT_VERSION = 1;

export class AlertQueue {
  readonly #bodies: string[] = [];
  #sizeBytes = 0;
  /** Lines at the head of the file that have been taken. */
  #taken = 0;
  /** Why the file is behind; what waits is here all the same. */
  fault: Error | undefined;

  /** @throws where the file cannot be written; {ConfigError} when a newer version wrote it. */
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

  /** On disk when it returns, but for `fault`; gives the number of oldest alerts that had to make room. */
  push(body: string): number {
    this.#add(body);
    let lost = 0;
    while (this.#sizeBytes > this.limitBytes && this.#bodies.length > 1) {
      this.#sizeBytes -= this.#bodies.shift()!.length;
      lost++;
    }
    this.#keep(() => {
      if (lost > 0 || this.#bodies.length === 1 || this.fault) this.#rewrite();
      else Deno.writeTextFileSync(this.path, JSON.stringify(body) + "\n", { append: true });
    });
    return lost;
  }

  /** The head has been taken. A crash before the file says so sends it again, which receivers recognize. */
  shift(): void {
    this.#sizeBytes -= this.#bodies.shift()!.length;
    this.#taken++;
    if (this.#bodies.length === 0 || this.#taken >= 64 || this.fault) this.#keep(() => this.#rewrite());
  }

  /** A full disk is what alerts tell of: it must not stand in their way. */
  #keep(write: () => void): void {
    try {
      write();
      this.fault = undefined;
    } catch (error) {
      this.fault = error as Error;
    }
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
    const lines = this.#bodies.length === 0 ? [] : [{ format: FORMAT_VERSION }, ...this.#bodies];
    Deno.writeTextFileSync(temporary, lines.map((line) => JSON.stringify(line) + "\n").join(""));
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
  const lines = text.split("\n").flatMap((line) => {
    try {
      return line === "" ? [] : [JSON.parse(line) as string | { format: number }];
    } catch {
      // The last line of a process that was killed while it wrote.
      return [];
    }
  });
  for (const line of lines) if (typeof line === "object") checkFormat(path, line.format);
  return lines.filter((line) => typeof line === "string");
}

function checkFormat(path: string, version: number): void {
  if (version <= FORMAT_VERSION) return;
  throw new ConfigError(
    "w.alert.class",
    `${path} was written by a newer version (format ${version}; this one reads up to ${FORMAT_VERSION}): ` +
      "start that version again until its alerts are taken, or move the file away",
  );
}
