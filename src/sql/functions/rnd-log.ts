import { batchEntry } from "./batch-entry.ts";
import type { FunctionEntry } from "./entry.ts";

const LINES_MAX = 100_000;
/** Number of lines that are written at once: a few milliseconds of the thread that serves clients. */
const PIECE_LINES = 100;

/** rnd_log(): writes lines for tests of the log's writers. */
export const rndLog: FunctionEntry[] = [
  batchEntry(
    "rnd_log",
    [{ name: "lines", type: "LONG", constant: true }, { name: "errorRatio", type: "DOUBLE", constant: true }],
    "BOOLEAN",
    `Writes up to ${LINES_MAX} lines to the server's log, this fraction of them as errors, once for each statement. The statement may end before all lines are written.`,
    undefined,
    [],
    {
      volatility: "volatile",
      permission: "SYSTEM ADMIN",
      check: ([lines, ratio]) => {
        if (lines === null || !(Number(lines) >= 0 && Number(lines) <= LINES_MAX)) {
          return { argument: 0, message: `expected 0 to ${LINES_MAX} lines` };
        }
        const isRatio = ratio !== null && Number(ratio) >= 0 && Number(ratio) <= 1;
        return isRatio ? undefined : { argument: 1, message: "expected a ratio from 0 to 1" };
      },
      served: ({ log }, [lines, ratio]) => {
        let line = 0;
        const writePiece = () => {
          const last = Math.min(line + PIECE_LINES, Number(lines));
          while (line < last) {
            log(Math.random() < Number(ratio) ? "ERROR" : "INFO", `rnd_log: line ${++line} of ${lines}`);
          }
          if (line < Number(lines)) setTimeout(writePiece);
        };
        writePiece();
        return true;
      },
    },
  ),
];
