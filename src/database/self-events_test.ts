import assert from "node:assert/strict";
import { SelfEvents } from "./self-events.ts";

Deno.test("SelfEvents calls back each time, after other events", async () => {
  const events = new SelfEvents();
  const after = () => new Promise<void>((resolve) => events.after(resolve));
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const client = await Deno.connect({ hostname: "127.0.0.1", port: (listener.addr as Deno.NetAddr).port });
  // The first ones use timers, until the connection is there.
  while (events["pair"] === undefined) await after();
  const accepted = listener.accept();
  let isAccepted = false;
  accepted.then(() => isAccepted = true);
  for (let k = 0; k < 3; k++) await after();
  assert.ok(isAccepted);
  for (let k = 0; k < 100; k++) await after();
  events.close();
  await after();
  (await accepted).close();
  client.close();
  listener.close();
});

Deno.test("SelfEvents calls back if its byte is lost, and connects again", async () => {
  const events = new SelfEvents();
  let closedCount = 0;
  const close = () => void closedCount++;
  const lost = { read: () => new Promise<never>(() => {}), write: () => Promise.resolve(1), close };
  events["pair"] = { from: lost, to: lost } as unknown as typeof events["pair"];
  const after = () => new Promise<void>((resolve) => events.after(resolve));
  await after();
  assert.equal(closedCount, 2);
  while (events["pair"] === undefined) await after();
  await after();
  events.close();
});
