/**
 * Only the parts of a request that matter for its credentials. Requests to a real server are tested in `tests/access/`.
 */
import assert from "node:assert/strict";
import type { Access, Identity } from "../../api.ts";
import { TooManyDerivations } from "../../auth/mod.ts";
import { Authenticator } from "./auth.ts";
import { Sessions } from "./sessions.ts";
import type { HttpSettings } from "./settings.ts";

const ALICE: Identity = { name: "alice" };
const PASSWORD = `Basic ${btoa("alice:right")}`, TOKEN = "Bearer qt1token";

async function statusOf(
  authorization: string,
  { hostname = "192.0.2.7", isSecure = false, allowsClearText = false, access = {} as Partial<Access> } = {},
): Promise<number> {
  const config = { user: "", password: "", limits: { connectionsMax: 8 }, allowsClearText, asksBrowsers: false };
  const known: Partial<Access> = {
    knownName: (name) => name,
    withPassword: (_name, password) => password === "right" ? ALICE : undefined,
    withToken: (token) => token === "qt1token" ? ALICE : undefined,
    isCurrent: () => true,
    ...access,
  };
  const authenticator = new Authenticator(config as unknown as HttpSettings, new Sessions(1000), known as Access);
  const headers = { get: (name: string) => name === "authorization" ? authorization : null };
  const request = { headers, isSecure, connection: {} } as never;
  const answer = await authenticator.authenticate(request, hostname, () => {});
  authenticator.close();
  return "status" in answer ? answer.status : 200;
}

const cases: [title: string, authorization: string, options: Parameters<typeof statusOf>[1], status: number][] = [
  ["a password in clear text from another machine is refused", PASSWORD, {}, 403],
  ["and also a wrong one, so that it is not tried", `Basic ${btoa("alice:wrong")}`, {}, 403],
  ["a password over TLS is taken", PASSWORD, { isSecure: true }, 200],
  ["a password from the same machine is taken", PASSWORD, { hostname: "127.0.0.1" }, 200],
  ["a password from the same machine is taken by IPv6", PASSWORD, { hostname: "::1" }, 200],
  ["a password in clear text is taken with acl.clear.text.passwords", PASSWORD, { allowsClearText: true }, 200],
  ["a token needs no TLS", TOKEN, {}, 200],
  ["a wrong token is refused", `${TOKEN}x`, {}, 401],
];
for (const [title, authorization, options, status] of cases) {
  Deno.test(`Authenticator: ${title}`, async () => assert.equal(await statusOf(authorization, options), status));
}

Deno.test("Authenticator: a password that waits for too many others is answered 429", async () => {
  const access = { withPassword: () => Promise.reject(new TooManyDerivations()) };
  assert.equal(await statusOf(PASSWORD, { isSecure: true, access }), 429);
});
