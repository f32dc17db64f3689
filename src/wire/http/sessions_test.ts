import assert from "node:assert/strict";
import { Sessions } from "./sessions.ts";

const bob = { name: "bob" };
const cookieOf = (setCookie: string) => setCookie.split(";")[0];

Deno.test("Sessions accept a cookie until it is unused for the time-out, and the previous one briefly", () => {
  let now = 0;
  const sessions = new Sessions(600_000, () => now);
  const first = sessions.open(bob);
  assert.match(first, /^sundial_session=s1[\w-]{43}; HttpOnly; Path=\/; SameSite=Strict; Max-Age=600$/);
  now = 500_000;
  const known = sessions.identify(`other=1; ${cookieOf(first)}`);
  assert.equal(known?.identity, bob);
  const second = sessions.continue(known!.token)!;
  now += 59_000;
  assert.equal(sessions.identify(cookieOf(first))?.identity, bob);
  now += 2_000;
  assert.equal(sessions.identify(cookieOf(first)), undefined);
  now = 1_099_999;
  assert.equal(sessions.identify(cookieOf(second))?.identity, bob);
  now = 1_100_000;
  assert.equal(sessions.identify(cookieOf(second)), undefined);
  assert.equal(sessions.identify("sundial_session=nonsense"), undefined);
  assert.equal(sessions.identify(undefined), undefined);
  assert.equal(sessions.size, 0);
});

Deno.test("Sessions end with all their tokens", () => {
  const sessions = new Sessions(600_000, () => 0);
  const first = sessions.open(bob), other = sessions.open(bob);
  const known = sessions.identify(cookieOf(first));
  const second = sessions.continue(known!.token)!;
  assert.equal(
    sessions.end(sessions.identify(cookieOf(second))!.token),
    "sundial_session=; HttpOnly; Path=/; SameSite=Strict; Max-Age=0",
  );
  for (const ended of [first, second]) assert.equal(sessions.identify(cookieOf(ended)), undefined);
  assert.equal(sessions.identify(cookieOf(other))?.identity, bob);
});

Deno.test("Sessions: a reply to a request from before the end of its session does not bring it back", () => {
  const sessions = new Sessions(600_000, () => 0);
  const slow = sessions.identify(cookieOf(sessions.open(bob)))!.token;
  sessions.end(slow);
  assert.equal(sessions.continue(slow), undefined);
  assert.equal(sessions.size, 0);
});

Deno.test("Sessions: a sign-in ends the session of the browser's cookie", () => {
  const sessions = new Sessions(600_000, () => 0);
  const before = cookieOf(sessions.open(bob)), slow = sessions.identify(before)!.token;
  const ann = sessions.open({ name: "ann" }, before);
  assert.equal(sessions.continue(slow), undefined);
  assert.equal(sessions.identify(before), undefined);
  assert.equal(sessions.identify(cookieOf(ann))?.identity.name, "ann");
});
