/**
 * Keycloak as an identity provider. `.ci/run` takes it from Maven Central and builds it once; each start has a realm and a database of
 * its own in memory.
 */
import { join } from "node:path";
import { CI_TOOLS } from "../clients/tools.ts";
import { until } from "../programs.ts";
import { freePort } from "../server.ts";
import { CLIENT_ID } from "./provider.ts";

const HOME = join(CI_TOOLS, "keycloak-26.4.0");
const REALM = "main";

export interface Keycloak extends AsyncDisposable {
  issuer: string;
  /** By the password flow. */
  accessToken(name: string, password: string): Promise<string>;
  idToken(name: string, password: string): Promise<string>;
  /** Changes a user, as its administrator. */
  alter(name: string, change: { enabled?: boolean }): Promise<void>;
  leave(name: string, group: string): Promise<void>;
}

export interface KeycloakUser {
  name: string;
  password: string;
  groups: string[];
}

/** Undefined if it is not installed. */
export async function startKeycloak(users: KeycloakUser[]): Promise<Keycloak | undefined> {
  const isBuilt = await Deno.stat(join(HOME, "lib/quarkus/build-system.properties")).then(() => true, () => false);
  if (!isBuilt) {
    console.log("skipped: Keycloak is not installed");
    return undefined;
  }
  const port = freePort(), address = `http://127.0.0.1:${port}`, issuer = `${address}/realms/${REALM}`;
  const home = await Deno.makeTempDir({ prefix: "keycloak-" });
  for (const name of ["lib", "conf", "providers", "themes"]) await Deno.symlink(join(HOME, name), join(home, name));
  await Deno.mkdir(join(home, "data/import"), { recursive: true });
  await Deno.writeTextFile(join(home, `data/import/${REALM}-realm.json`), JSON.stringify(realm(users)));
  const process = new Deno.Command("java", {
    args: [
      "-Xmx384m",
      `-Dkc.home.dir=${home}`,
      `-Djboss.server.config.dir=${home}/conf`,
      "-Djava.util.logging.manager=org.jboss.logmanager.LogManager",
      "-Dkc.config.built=true",
      "-cp",
      `${home}/lib/quarkus-run.jar`,
      "io.quarkus.bootstrap.runner.QuarkusEntryPoint",
      ...["start", "--optimized", "--import-realm", "--http-enabled=true", "--http-host=127.0.0.1"],
      ...[`--http-port=${port}`, "--hostname-strict=false", "--cache=local"],
    ],
    env: { KC_BOOTSTRAP_ADMIN_USERNAME: "admin", KC_BOOTSTRAP_ADMIN_PASSWORD: "admin" },
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  let output = "";
  const drained = (async () => {
    for await (const text of process.stdout.pipeThrough(new TextDecoderStream())) output += text;
  })();
  const dispose = async () => {
    try {
      process.kill("SIGKILL");
    } catch {
      // it has ended
    }
    await Promise.all([process.status, drained]);
    await Deno.remove(home, { recursive: true });
  };
  let hasEnded = false;
  process.status.then(() => hasEnded = true);
  try {
    await until("Keycloak is ready", async () => {
      if (hasEnded) throw new Error(`Keycloak has ended:\n${output}`);
      const reply = await fetch(`${issuer}/.well-known/openid-configuration`).catch(() => undefined);
      // Another program may have the port.
      return reply !== undefined && (await reply.text()).includes(`"issuer":"${issuer}"`);
    }, 300_000);
  } catch (error) {
    await dispose();
    throw new Error(output, { cause: error });
  }

  async function tokensOf(realm: string, body: Record<string, string>) {
    const reply = await fetch(`${address}/realms/${realm}/protocol/openid-connect/token`, {
      method: "POST",
      body: new URLSearchParams({ grant_type: "password", ...body }),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(text);
    return JSON.parse(text) as { access_token: string; id_token: string };
  }
  const tokensOfUser = (username: string, password: string) =>
    tokensOf(REALM, { client_id: CLIENT_ID, scope: "openid profile", username, password });
  async function administer(path: string, init: { method?: string; body?: string } = {}): Promise<string> {
    const admin = await tokensOf("master", { client_id: "admin-cli", username: "admin", password: "admin" });
    const headers = { authorization: `Bearer ${admin.access_token}`, "content-type": "application/json" };
    const reply = await fetch(`${address}/admin/realms/${REALM}/${path}`, { ...init, headers });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${text}`);
    return text;
  }
  const idOf = async (kind: string, query: Record<string, string>): Promise<string> =>
    JSON.parse(await administer(`${kind}?${new URLSearchParams({ exact: "true", ...query })}`))[0].id;
  return {
    issuer,
    accessToken: async (name, password) => (await tokensOfUser(name, password)).access_token,
    idToken: async (name, password) => (await tokensOfUser(name, password)).id_token,
    async alter(name, change) {
      const id = await idOf("users", { username: name });
      const user = JSON.parse(await administer(`users/${id}`));
      await administer(`users/${id}`, { method: "PUT", body: JSON.stringify({ ...user, ...change }) });
    },
    async leave(name, group) {
      const [user, id] = [await idOf("users", { username: name }), await idOf("groups", { search: group })];
      await administer(`users/${user}/groups/${id}`, { method: "DELETE" });
    },
    [Symbol.asyncDispose]: dispose,
  };
}

function realm(users: KeycloakUser[]) {
  return {
    realm: REALM,
    enabled: true,
    sslRequired: "none",
    groups: [...new Set(users.flatMap(({ groups }) => groups))].map((name) => ({ name })),
    clients: [{
      clientId: CLIENT_ID,
      publicClient: true,
      standardFlowEnabled: true,
      directAccessGrantsEnabled: true,
      // The port of the server is not known yet.
      redirectUris: ["*"],
      webOrigins: ["*"],
      protocolMappers: [{
        name: "groups",
        protocol: "openid-connect",
        protocolMapper: "oidc-group-membership-mapper",
        config: {
          "claim.name": "groups",
          "full.path": "false",
          "userinfo.token.claim": "true",
          "id.token.claim": "true",
          "access.token.claim": "true",
        },
      }],
    }],
    users: users.map(({ name, password, groups }) => ({
      username: name,
      enabled: true,
      emailVerified: true,
      email: `${name}@example.org`,
      firstName: name,
      lastName: "Jones",
      credentials: [{ type: "password", value: password }],
      groups: groups.map((group) => `/${group}`),
    })),
  };
}
