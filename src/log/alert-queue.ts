/**
 * The alerts that are not delivered yet, on disk, so that they survive the process. The file is empty if there are
 * none. Otherwise it contains lines of JSON:
 *
 *     {"format":1}       not in format 0
 *     "BODY"             one for each alert
 */
import { ConfigError } from "../errors.ts";

const FORMAT_VERSION = 1;

export class AlertQueue {
  readonly #bodies: string[] = [];
  #sizeBytes = 0;
  /** Number of alerts at the start of the file that are delivered. */
  #taken = 0;
  /** The error of the last write to the file. The alerts are still kept in memory. */
  fault: Error | undefined;

  /**
   * @throws if the file cannot be written; {ConfigError} for a file of a newer version.
   */
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

  /**
   * Adds an alert. It is on disk on return, unless `fault` is set. Returns the number of oldest alerts that were dropped to
   * stay within the limit.
   */
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

  /**
   * Removes the delivered first alert. If the process crashes before the file is updated, it is sent again; receivers
   * recognize duplicates.
   */
  shift(): void {
    this.#sizeBytes -= this.#bodies.shift()!.length;
    this.#taken++;
    if (this.#bodies.length === 0 || this.#taken >= 64 || this.fault) this.#keep(() => this.#rewrite());
  }

  /** Alerts may report a full disk, so a failed write must not stop them. */
  #keep(write: () => void): void {
    try {
      write();
      this.fault = undefined;
    } catch (error) {
      this.fault = error as Error;
    }
  }

  /** Moves the first alert to the end, so that it does not hold up the others. */
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
      // An incomplete last line, of a process that was killed while writing.
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
      "start that version again until its alerts are delivered, or move the file away",
  );
}
