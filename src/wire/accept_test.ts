import assert from "node:assert/strict";
import { acceptAll } from "./accept.ts";

/** What happens with a listener whose calls of accept() return or throw these. */
async function told(...accepted: (string | Error)[]): Promise<string[]> {
  const events: string[] = [];
  const accept = async () => {
    await undefined;
    const next = accepted.shift()!;
    if (next instanceof Error) throw next;
    return { name: next, close: () => events.push(`close ${next}`) } as unknown as Deno.TcpConn;
  };
  await acceptAll({ accept }, {
    welcome: (connection) => {
      const { name } = connection as unknown as { name: string };
      if (name === "bad") throw new Error("no");
      events.push(name);
    },
    failed: (error) => events.push((error as Error).message),
    isClosing: () => accepted.length === 0,
  }, async () => {
    await undefined;
    events.push("pause");
  });
  return events;
}

Deno.test("acceptAll() goes on at once after clients that have left before", async () => {
  const gone = Array.from({ length: 100 }, () => new Deno.errors.NotConnected("gone"));
  assert.deepEqual(await told(...gone, "a", new Deno.errors.ConnectionAborted(""), "b", "end"), ["a", "b", "end"]);
});

Deno.test("acceptAll() pauses after other errors", async () => {
  assert.deepEqual(await told("a", new Error("no descriptors"), "b", "end"), [
    "a",
    "no descriptors",
    "pause",
    "b",
    "end",
  ]);
});

Deno.test("acceptAll() closes a connection that cannot be served, and accepts others", async () => {
  assert.deepEqual(await told("bad", "b", "end"), ["close bad", "no", "pause", "b", "end"]);
});
