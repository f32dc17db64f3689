import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { createPool, openStorage } from "../../src/storage/mod.ts";
import { openTables, readRows } from "../../src/storage/test-rows.ts";
import { randomOf } from "./harness.ts";

const ROWS = 50;

/** Number of kills: few by default, `SUNDIAL_KILLS=200` for a thorough run. */
const KILLS = Number(Deno.env.get("SUNDIAL_KILLS") ?? 8);

/** Kills of one database: it grows, and is checked completely after each. */
const KILLS_MAX = 10;

Deno.test(`a process that is killed under load ${KILLS} times loses no acknowledged commit, and shows none in part`, async () => {
  const random = randomOf(KILLS);
  for (let kills = 0; kills < KILLS; kills += KILLS_MAX) await live(random, Math.min(KILLS_MAX, KILLS - kills));
});

async function live(random: () => number, kills: number): Promise<void> {
  const root = Deno.makeTempDirSync();
  const acknowledged = new Set<string>();
  for (let kill = 0; kill < kills; kill++) {
    const start = 1 + kill * 100_000;
    const child = new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        "--no-check",
        fileURLToPath(new URL("./kill-child.ts", import.meta.url)),
        `${root}/db`,
        String(start),
      ],
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    let killer: ReturnType<typeof setTimeout> | undefined;
    let text = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      // The timer starts with the first commit.
      killer ??= setTimeout(() => child.kill("SIGKILL"), random() * 400);
      text += chunk;
    }
    await child.status;
    clearTimeout(killer);
    for (const line of text.split("\n").slice(0, -1)) acknowledged.add(line);

    const storage = await openStorage({ root: `${root}/db`, heapSizeBytes: 64 << 20, inProcess: true });
    await openTables(storage);
    const pool = createPool(storage.heap);
    const counts = ["a", "b"].map((name) => {
      const found = new Map<string, number>();
      for (const [client, number, text] of readRows(storage.heap, pool, storage.catalogue.table(name)!)) {
        assert.equal(text, `text ${number}`);
        const key = `${(client as string).slice(1)} ${number}`;
        found.set(key, (found.get(key) ?? 0) + 1);
      }
      return found;
    });
    for (const key of acknowledged) {
      assert.equal(counts[0].get(key), ROWS, `kill ${kill}: commit ${key} was acknowledged`);
    }
    assert.deepEqual(
      new Map([...counts[0]].sort()),
      new Map([...counts[1]].sort()),
      "commits are whole in both tables",
    );
    for (const count of counts[0].values()) assert.equal(count, ROWS);
    pool.close();
    await storage.writer.close();
  }
  assert.ok(acknowledged.size > 0);
  Deno.removeSync(root, { recursive: true });
}
