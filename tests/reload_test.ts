/** `select reload_config()`: which settings change at once, which do not, and that secrets are not shown. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { until } from "./programs.ts";
import { startServer } from "./server.ts";
import { pgClient } from "./pg-client.ts";

Deno.test("reload_config() applies reloadable keys, names the others, and changes nothing if a key is bad", async () => {
  await using server = await startServer();
  const conf = join(server.root, "conf", "server.conf");
  const shipped = Deno.readTextFileSync(conf);
  const write = (lines: string) => Deno.writeTextFileSync(conf, `${shipped}\n${lines}\n`);
  const reload = async () => (await server.exec("select reload_config()")).dataset;
  const login = async (user: string, password: string) => {
    const client = pgClient(server, { user, password });
    try {
      await client.connect();
      await client.end();
      return true;
    } catch {
      return false;
    }
  };
  assert.deepEqual(await reload(), [[false]]);
  assert.deepEqual(await Promise.all([login("admin", "quest"), login("admin", "s3cret-word")]), [true, false]);

  write("pg.password=s3cret-word\nquery.timeout=5s");
  assert.deepEqual(await reload(), [[true]]);
  assert.deepEqual(await reload(), [[false]], "only a key is left that cannot change");
  assert.deepEqual(await Promise.all([login("admin", "quest"), login("admin", "s3cret-word")]), [false, true]);
  const told = /configuration: query\.timeout has changed and takes effect at the next start/;
  await until("the log tells of it", () => told.test(server.output()));
  const pending = async () => (await server.exec("select * from pending_config()")).dataset;
  assert.deepEqual(await pending(), [["query.timeout", "60s", "5s"]]);

  write("pg.password=other-word\npg.net.connection.limit=many\nquery.timeout=soon");
  assert.deepEqual(await reload(), [[false]]);
  assert.deepEqual(await pending(), [["query.timeout", "60s", "5s"]], "as before, where server.conf has faults");
  assert.ok(await login("admin", "s3cret-word"));
  const refused = / E server-main the configuration was not reloaded: .*"soon".*; .*"many".*\r\n/;
  await until("the log has the faults", () => refused.test(server.output()));
  assert.doesNotMatch(server.output(), /s3cret-word|other-word/);

  write("http.user=a\nhttp.password=b\npg.password=s3cret-word\npg.net.connection.limit=1");
  assert.deepEqual(await reload(), [[true]]);
  assert.deepEqual(await pending(), [["http.user", "", "a"], ["http.password", "", "****"]]);
  const only = pgClient(server, { password: "s3cret-word" });
  await only.connect();
  assert.equal(await login("admin", "s3cret-word"), false);
  await only.end();
  // EXPLAIN changes nothing.
  write("pg.password=s3cret-word\npg.net.connection.limit=9");
  await server.exec("explain select reload_config()");
  assert.deepEqual(await reload(), [[true]]);
});
