/** Secrets are never shown; the audit records changes; a lost password of the administrator is reset. */
import assert from "node:assert/strict";
import { DEVELOPMENT_FLAGS } from "../../scripts/flags.ts";
import { fromFileUrl } from "../paths.ts";
import { ADMIN, startProtected } from "./server.ts";

const SECRETS = ["hunter2quoted", "hunter3bare", "hunter4wrong", "hunter5syntax"];

Deno.test("secrets are in no log, error, listing, audit or list of processes; each change is in the audit", async () => {
  const root = Deno.makeTempDirSync({ prefix: "sundial-secrets-" });
  await using server = await startProtected({
    SVC_LOG_SQL_QUERY_PROGRESS_EXE: "true",
    SVC_QUERY_TRACING_ENABLED: "true",
  }, { root, args: ["-Debug"] });
  const said: string[] = [];
  const ask = async (sql: string) => said.push(JSON.stringify(await server.sql(sql)));
  await ask("create user alice with password 'hunter2quoted'");
  await ask("create user if not exists alice with password 'hunter2quoted'");
  await ask("drop user if exists nobody");
  await ask("alter user alice with password hunter3bare");
  await ask("alter user nobody with password 'hunter4wrong'");
  await ask("create user x with password 'hunter5syntax' and more");
  await server.set("grant HTTP to alice", "grant HTTP to alice", "revoke HTTP from alice", "revoke HTTP from alice");
  const made = await server.sql("alter user alice create token type rest with ttl '1h'");
  const token = String(made.dataset![0][1]);
  await ask(`alter user alice drop token type rest '${token.slice(0, -1)}x'`);
  await ask(`alter user alice drop token type rest '${token}'`);
  const bob = { name: "bob", password: "bob's own" };
  await server.set("create user bob with password 'bob''s own'", "grant HTTP, PGWIRE, CREATE TABLE to bob");
  await server.sql("create table a (x int)", bob);
  await server.sql("alter table a add column y int", bob);
  await server.lines("made,city=Rome x=1", bob);
  const session = await server.pg(bob);
  await session.query("begin");
  await session.query("create table undone (x int)");
  await session.query("rollback");
  await session.query("begin; create table done (x int); commit");
  await session.end();
  await server.set(
    "create table nobodys (x int)",
    "rename table a to b",
    "drop table b cascade permissions",
    "drop table nobodys",
  );
  await ask("show parameters");
  await ask("select * from query_activity()");
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await ask("select * from _query_trace");
  const client = await server.pg(ADMIN);
  await assert.rejects(client.query("alter user nobody with password 'hunter4wrong'"));
  said.push(JSON.stringify((await client.query("select * from pg_stat_activity")).rows));
  await client.end();
  const processes = await commandLines();
  await server.stop();
  const everything = [
    ...said.map((text) => text.replace(/"query":"(?:[^"\\]|\\.)*"/g, "")),
    server.output(),
    processes,
  ];
  for (const secret of [...SECRETS, token, ADMIN.password]) {
    for (const text of everything) {
      const at = text.indexOf(secret);
      assert.ok(at < 0, `${secret} is told: ${text.slice(Math.max(0, at - 200), at + 100)}`);
    }
  }
  const audit = server.output().split("\n").filter((line) => / A audit /.test(line)).map((line) =>
    line.split(" audit ")[1]
  );
  const expected = [
    /^CREATE USER 'alice' WITH PASSWORD \[by=admin, from=127\.0\.0\.1:\d+, wire=http\]/,
    /^ALTER USER 'alice' WITH PASSWORD \[by=admin/,
    /^GRANT HTTP TO 'alice' \[by=admin/,
    /^REVOKE HTTP FROM 'alice' \[by=admin/,
    /^ALTER USER 'alice' CREATE TOKEN TYPE REST \[by=admin/,
    /^ALTER USER 'alice' DROP TOKEN TYPE REST \[by=admin/,
    /^CREATE USER 'bob' WITH PASSWORD \[by=admin/,
    /^GRANT HTTP, PGWIRE, CREATE TABLE TO 'bob' \[by=admin/,
    /^GRANT ALL ON 'a' TO 'bob' WITH GRANT OPTION, by CREATE TABLE \[by=bob, from=127\.0\.0\.1:\d+, wire=http\]/,
    /^GRANT ALL ON 'a'\('y'\) TO 'bob' WITH GRANT OPTION, by ADD COLUMN \[by=bob, from=/,
    /^GRANT ALL ON 'made' TO 'bob' WITH GRANT OPTION, by CREATE TABLE \[by=bob, from=127\.0\.0\.1:\d+, wire=http\]/,
    /^GRANT ALL ON 'done' TO 'bob' WITH GRANT OPTION, by CREATE TABLE \[by=bob, from=127\.0\.0\.1:\d+, wire=pg\]/,
    /^RENAME TABLE 'a' TO 'b', with its grants \[by=admin, from=/,
    /^DROP TABLE 'b' CASCADE PERMISSIONS \[by=admin, from=/,
  ];
  assert.equal(audit.length, expected.length, audit.join("\n"));
  expected.forEach((pattern, k) => assert.match(audit[k], pattern));
  Deno.removeSync(root, { recursive: true });
});

async function reset(root: string, password: string): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", ...DEVELOPMENT_FLAGS, fromFileUrl("../main.ts"), "reset-admin-password", "-d", root],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(`${password}\n`));
  await writer.close();
  const { code, stdout, stderr } = await child.output();
  return `${code} ${new TextDecoder().decode(code === 0 ? stdout : stderr).trim()}`;
}

Deno.test("the administrator's password is reset on a stopped root, and the audit says so", async () => {
  const root = Deno.makeTempDirSync({ prefix: "sundial-reset-" });
  {
    await using server = await startProtected({}, { root });
    await server.set("create user alice");
    assert.match(await reset(root, "new one"), /^1 sundial: .*in use by another process/);
    await server.stop();
  }
  assert.match(await reset(root, "new one"), /^0 from the next start, admin has the new password/);
  {
    await using server = await startProtected({}, { root });
    assert.equal((await server.sql("select 1")).status, 401);
    const found = await server.sql("show users", { name: "admin", password: "new one" });
    assert.deepEqual(found.dataset, [["alice"]]);
    assert.match(server.output(), / A audit the password of admin was set by reset-admin-password at 20/);
    await server.stop();
  }
  assert.match(await reset(root, ""), /^0 from the next start, the password of admin is acl\.admin\.password/);
  await using server = await startProtected({}, { root });
  assert.equal((await server.sql("select 1")).status, 200);
  await server.stop();
  Deno.removeSync(root, { recursive: true });
});

/** The command lines of all processes. Not every Linux has `ps`. */
async function commandLines(): Promise<string> {
  if (Deno.build.os !== "linux") {
    return new TextDecoder().decode((await new Deno.Command("ps", { args: ["axww"] }).output()).stdout);
  }
  const lines: string[] = [];
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    // A process may have ended.
    const line = await Deno.readTextFile(`/proc/${name}/cmdline`).catch(() => "");
    lines.push(line.replaceAll("\0", " "));
  }
  assert.ok(lines.some((line) => line.includes("deno")));
  return lines.join("\n");
}
