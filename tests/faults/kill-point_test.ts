/** A real process that is killed at an I/O point, and again during recovery, keeps everything that it acknowledged. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { realFiles } from "../../src/storage/files.ts";
import { copyDatabase } from "../../src/storage/mod.ts";
import { History, Opened, randomOf, script, testHeap } from "./harness.ts";

const SEED = 3;
/** Number of points, evenly spread: few by default, `SUNDIAL_KILL_POINTS=all` for all. */
const POINTS = Deno.env.get("SUNDIAL_KILL_POINTS") ?? "6";

async function live(root: string, dieAt: number, from: number): Promise<{ done: number; points: number }> {
  const child = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--no-check",
      fileURLToPath(new URL("./kill-point-child.ts", import.meta.url)),
      ...[root, SEED, dieAt, from].map(String),
    ],
    stdout: "piped",
    stderr: "inherit",
  }).output();
  assert.equal(child.signal, "SIGKILL");
  const lines = new TextDecoder().decode(child.stdout).trim().split("\n");
  const last = lines.findLast((line) => /^\d+$/.test(line));
  return { done: Number(last ?? from), points: Number(lines.at(-1)!.slice("points ".length)) };
}

/** The number of steps whose result is present. */
function check(history: History, root: string, done: number): number {
  const db = new Opened(realFiles, testHeap(), randomOf(1), { root });
  try {
    return history.check(db, done);
  } finally {
    db.pool.close();
    db.store.execute([{ kind: "close" }]);
  }
}

Deno.test(`killed at I/O points of a real file system (${POINTS}), nothing that was acknowledged is lost`, async () => {
  const history = new History(script(SEED));
  const root = Deno.makeTempDirSync({ prefix: "sundial-points-" });
  try {
    const { done, points } = await live(`${root}/whole`, 0, 0);
    assert.equal(check(history, `${root}/whole`, done), history.steps.length);
    const step = POINTS === "all" ? 1 : Math.max(1, Math.floor(points / Number(POINTS)));
    for (let point = step; point <= points; point += step) {
      const directory = `${root}/${point}`;
      const first = await live(directory, point, 0);
      try {
        // Kill a second time soon after the start, mostly during recovery.
        if (point % (2 * step) === 0) {
          const copy = `${directory}-again`;
          await copyDatabase(directory, copy);
          const { done } = await live(copy, 1 + (point % 11), first.done);
          check(history, copy, done);
          Deno.removeSync(copy, { recursive: true });
        }
        check(history, directory, first.done);
      } catch (error) {
        throw new Error(`killed at point ${point} after ${first.done} steps`, { cause: error });
      }
      Deno.removeSync(directory, { recursive: true });
    }
  } finally {
    Deno.removeSync(root, { recursive: true });
  }
});
