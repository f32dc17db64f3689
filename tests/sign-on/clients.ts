/** Real clients sign in by an access token, and by name and password: curl, psql, JDBC and the clients of the line protocol. */
import assert from "node:assert/strict";
import type { ProtectedServer } from "../access/server.ts";
import { lineClients } from "../clients/lines.ts";
import { CI_TOOLS } from "../clients/tools.ts";
import { fromFileUrl } from "../paths.ts";
import { installed } from "../programs.ts";

const PROGRAMS = fromFileUrl("./sign-on/clients/");
const JDBC = `${CI_TOOLS}/postgresql-42.7.8.jar`;
const WHO = "select current_user()";

/** What `startSignOn` needs for all of them. */
export const CLIENTS_ENV = {
  SVC_ACL_OIDC_PG_TOKEN_AS_PASSWORD_ENABLED: "true",
  SVC_ACL_OIDC_ROPC_FLOW_ENABLED: "true",
};

export const CLIENTS_SETUP = [
  "create table ticks (price double, timestamp timestamp) timestamp(timestamp) partition by day",
  "create group readers with external alias 'readers'",
  "grant HTTP, PGWIRE to readers",
  "grant INSERT on ticks to readers",
];

export interface SignedOn {
  token: string;
  /** At the provider. */
  name: string;
  password: string;
}

async function run([program, ...args]: string[], env: Record<string, string> = {}): Promise<string> {
  const { stdout, stderr } = await new Deno.Command(program, { args, env, cwd: PROGRAMS, stdin: "null" }).output();
  const decoder = new TextDecoder();
  return decoder.decode(stdout) + decoder.decode(stderr);
}

async function curl(server: ProtectedServer, { token, name, password }: SignedOn): Promise<void> {
  const url = `${server.http}/exec?${new URLSearchParams({ query: WHO, nm: "true" })}`;
  const ask = (...credentials: string[]) => run(["curl", "-sS", "-w", " %{http_code}", ...credentials, url]);
  const right = `{"dataset":[["${name}"]],"count":1} 200`;
  assert.equal(await ask("-H", `Authorization: Bearer ${token}`), right);
  assert.equal(await ask("--user", `${name}:${password}`), right);
  for (const wrong of [["-H", `Authorization: Bearer ${token}x`], ["--user", `${name}:wrong`], []]) {
    assert.match(await ask(...wrong), / 401$/);
  }
}

async function psql(server: ProtectedServer, { token, name, password }: SignedOn): Promise<void> {
  const ask = (user: string, secret: string) => {
    const place = `host=127.0.0.1 port=${server.pgPort} user=${user} dbname=qdb`;
    return run(["psql", "-XAt", place, "-c", WHO], { PGPASSWORD: secret });
  };
  assert.equal(await ask("_sso", token), `${name}\n`);
  assert.equal(await ask(name, password), `${name}\n`);
  assert.match(await ask("_sso", `${token}x`), /the token is not valid/);
  assert.match(await ask(name, "wrong"), /password authentication failed/);
}

async function jdbc(server: ProtectedServer, { token, name, password }: SignedOn): Promise<void> {
  const attempts = ["_sso", token, name, password, "_sso", `${token}x`, name, "wrong"];
  const answers = await run(["java", "-cp", JDBC, "SignIn.java", String(server.pgPort), ...attempts]);
  assert.equal(answers, `${name}\n${name}\n28P01\n28P01\n`);
}

async function lines(server: ProtectedServer, { token, name, password }: SignedOn, test: Deno.TestContext) {
  for (const client of await lineClients()) {
    await test.step(`line protocol: ${client.name}`, async () => {
      const send = (credentials: string) =>
        client.send(`http::addr=127.0.0.1:${server.httpPort};protocol_version=1;${credentials}`);
      const count = async () => Number((await server.sql("select count() from ticks")).dataset![0][0]);
      const before = await count();
      assert.equal(await send(`token=${token};`), "ok");
      assert.equal(await send(`username=${name};password=${password};`), "ok");
      assert.match(await send(`token=${token}x;`), /401|Unauthorized/);
      assert.match(await send(`username=${name};password=wrong;`), /401|Unauthorized/);
      assert.equal(await count(), before + 2);
    }).finally(() => client.close());
  }
}

/** A step for each client that is installed. */
export async function signInByClients(server: ProtectedServer, who: SignedOn, test: Deno.TestContext): Promise<void> {
  const [hasCurl, hasPsql, hasJava] =
    (await Promise.all([["curl"], ["psql"], ["java"]].map((name) => installed(name, "sign-on")))).map(({ length }) =>
      length > 0
    );
  const hasDriver = hasJava && await Deno.stat(JDBC).then(() => true, () => false);
  await test.step({ name: "curl", ignore: !hasCurl, fn: () => curl(server, who) });
  await test.step({ name: "psql", ignore: !hasPsql, fn: () => psql(server, who) });
  await test.step({ name: "JDBC", ignore: !hasDriver, fn: () => jdbc(server, who) });
  await lines(server, who, test);
}
