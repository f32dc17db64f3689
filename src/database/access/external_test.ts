import assert from "node:assert/strict";
import type { Identity } from "../../api.ts";
import type { ProviderUser, Tokens } from "../../auth/oidc/mod.ts";
import { ExternalUsers } from "./external.ts";

const TTL_MS = 1_000;

/** A provider with one user, and a clock. */
function setUp(change: Partial<ProviderUser> = {}, cacheTtlMs = TTL_MS) {
  const state = { now: 0, asked: 0, accepts: true };
  const user: ProviderUser = { subject: "ann", fullName: "Ann", groups: ["g"], expiresAtMs: undefined, ...change };
  const answer = () => {
    state.asked++;
    return Promise.resolve(state.accepts ? user : undefined);
  };
  const users = new ExternalUsers({
    // deno-lint-ignore no-explicit-any
    settings: { cacheTtlMs } as any,
    userOf: answer,
    tokensFor: () => Promise.resolve<Tokens>({ token: "t", refreshToken: undefined }),
    renewed: () => Promise.resolve(undefined),
  }, () => state.now);
  return { state, users };
}

Deno.test("ExternalUsers: an answer is valid for the cache time", async () => {
  const { state, users } = setUp();
  assert.ok(users.withToken("a") instanceof Promise);
  await users.withToken("a");
  assert.equal(state.asked, 1, "one question for two who ask at the same time");
  state.now = TTL_MS - 1;
  const known = users.withToken("a") as Identity;
  assert.equal(known.name, "ann");
  state.now = TTL_MS;
  await users.withToken("a");
  assert.equal(state.asked, 2);
});

Deno.test("ExternalUsers: a token is not accepted for longer than it is valid", async () => {
  const { state, users } = setUp({ expiresAtMs: Date.now() - 1 });
  await users.withToken("a");
  await users.withToken("a");
  assert.equal(state.asked, 2);
});

Deno.test("ExternalUsers: renewing a session does not extend the validity of its password", async () => {
  const { state, users } = setUp();
  const { external, secret } = (await users.withPassword("ann", "p"))!;
  state.now = TTL_MS;
  assert.equal(await external!.renew(), true);
  assert.equal(external!.isCurrent, true);
  assert.equal(users.isKnown(secret), false);
  assert.ok(users.withPassword("ann", "p") instanceof Promise);
});

Deno.test("ExternalUsers: a session that the provider ends has no groups, in all sessions of the user", async () => {
  const { state, users } = setUp();
  const { external } = (await users.withToken("a"))!;
  state.now = TTL_MS;
  state.accepts = false;
  assert.equal(await users.withToken("a"), undefined);
  assert.deepEqual([external!.groups, external!.isCurrent], [[], false]);
  assert.equal(users.withToken("a"), undefined, "refused again without a question");
  assert.equal(state.asked, 2);
});

Deno.test("ExternalUsers: the cache is bounded", async () => {
  const { state, users } = setUp();
  for (let k = 0; k < 10_001; k++) await users.withToken(`token ${k}`);
  assert.equal(users.statistics.signOnsCached, 10_000);
  const { asked } = state;
  await users.withToken("token 0");
  assert.equal(state.asked, asked + 1);
  assert.ok(!(users.withToken("token 10000") instanceof Promise));
});

Deno.test("ExternalUsers: with a cache time of 0, the provider is asked each time", async () => {
  const { state, users } = setUp({}, 0);
  const { external } = (await users.withToken("a"))!;
  assert.ok(await users.withToken("a"));
  assert.equal(external!.isCurrent, false);
  assert.equal(await external!.renew(), true);
  assert.equal(state.asked, 3);
});
