/** Reports the progress of statements to the log and to the table of traces. */
import type { Answer, Chunk } from "../api.ts";
import { SqlError } from "../errors.ts";
import { shownMessage, shownText } from "../log/mod.ts";

export interface ProgressOptions {
  /** The level of the lines logged when a statement begins and ends. */
  logs: "INFO" | "DEBUG" | undefined;
  log(level: "DEBUG" | "INFO" | "ERROR", message: string): void;
  /** Undefined if tracing is off. */
  trace(): ((end: StatementEnd) => void) | undefined;
}

export interface StatementEnd {
  text: string;
  user: string;
  micros: number;
  /** Undefined if the statement succeeded. */
  error?: unknown;
}

export class Progress {
  constructor(private readonly options: ProgressOptions) {}

  get isWatched(): boolean {
    return this.options.logs !== undefined || this.options.trace() !== undefined;
  }

  /** Runs a statement to the end of its rows, and reports its begin and end. */
  async watch(
    { id, text, user }: { id: number; text: string; user: string },
    execute: () => Answer | Promise<Answer>,
  ): Promise<Answer> {
    const { options } = this;
    const start = performance.now();
    if (options.logs) {
      options.log(options.logs, `exe [id=${id}, sql=\`${shownText(text)}\`, principal=${shownText(user)}]`);
    }
    let isOver = false;
    const end = (error?: unknown) => {
      if (isOver) return;
      isOver = true;
      const micros = Math.round((performance.now() - start) * 1000);
      if (options.logs) this.logEnd(options.logs, id, { text, user, micros, error });
      options.trace()?.({ text, user, micros, error });
    };
    try {
      const answer = await execute();
      if (answer.kind === "rows" && answer.ready === undefined) {
        return { ...answer, chunks: watched(answer.chunks, end) };
      }
      end();
      return answer;
    } catch (error) {
      end(error);
      throw error;
    }
  }

  private logEnd(level: "INFO" | "DEBUG", id: number, { text, user, micros, error }: StatementEnd): void {
    const about = `[id=${id}, sql=\`${shownText(text)}\`, principal=${shownText(user)}, micros=${micros}`;
    if (error === undefined) return this.options.log(level, `fin ${about}]`);
    const { message } = error instanceof Error ? error : { message: String(error) };
    const place = error instanceof SqlError ? `, pos=${error.position}` : "";
    this.options.log(level === "DEBUG" ? level : "ERROR", `err ${about}, msg=${shownMessage(message, text)}${place}]`);
  }
}

async function* watched(chunks: AsyncIterable<Chunk>, end: (error?: unknown) => void): AsyncGenerator<Chunk> {
  try {
    yield* chunks;
  } catch (error) {
    end(error);
    throw error;
  } finally {
    // Also called if the reader stops early.
    end();
  }
}
