import { CLIENTS_ENV, CLIENTS_SETUP, signInByClients } from "./clients.ts";
import { startProvider } from "./provider.ts";
import { startSignOn } from "./server.ts";

Deno.test("clients sign in at oidc-provider", { sanitizeOps: false, sanitizeResources: false }, async (test) => {
  const password = "bob's";
  await using provider = await startProvider({ users: { bob: { name: "Bob Jones", groups: ["readers"], password } } });
  await using server = await startSignOn(provider, CLIENTS_ENV);
  await server.set(...CLIENTS_SETUP);
  await signInByClients(server, { token: await provider.accessToken("bob"), name: "bob", password }, test);
});
