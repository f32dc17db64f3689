/** Secrets are read from all sources and never shown. */
import assert from "node:assert/strict";
import { join } from "node:path";
import pg from "pg";
import { DEVELOPMENT_FLAGS } from "../../scripts/flags.ts";
import { fromFileUrl } from "../paths.ts";
import { startServer } from "../server.ts";

Deno.test("secrets from a file, from server.conf and from the environment are used and never shown", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  Deno.mkdirSync(join(root, "conf"));
  Deno.writeTextFileSync(join(root, "conf", "server.conf"), "http.user=web\nhttp.password=in-the-file-1\n");
  Deno.writeTextFileSync(join(root, "secret"), "in-a-file-2\n");
  const env = {
    SVC_PG_PASSWORD_FILE: join(root, "secret"),
    SVC_PG_READONLY_USER_ENABLED: "true",
    SVC_PG_READONLY_PASSWORD: "in-the-environment-3",
    // A misspelt key whose value must not be shown.
    SVC_PG_PASWORD: "in-a-slip-4",
    SVC_LOG_W_STDOUT_LEVEL: "DEBUG,INFO",
    SVC_METRICS_ENABLED: "true",
    SVC_DEV_MODE_ENABLED: "true",
  };
  const told: string[] = [];
  {
    await using server = await startServer({ root, env, authorization: `Basic ${btoa("web:in-the-file-1")}` });
    const ask = async (query: string, password: string) => {
      const reply = await fetch(`${server.http}/exec?${new URLSearchParams({ query })}`, {
        headers: { authorization: `Basic ${btoa(`web:${password}`)}` },
      });
      return { status: reply.status, text: await reply.text() };
    };
    const shown = await ask("show parameters", "in-the-file-1");
    assert.equal(shown.status, 200);
    const { columns, dataset } = JSON.parse(shown.text) as { columns: { name: string }[]; dataset: unknown[][] };
    assert.deepEqual(columns.map(({ name }) => name), [
      "property_path",
      "env_var_name",
      "value",
      "value_source",
      "sensitive",
      "reloadable",
    ]);
    const rows = new Map(dataset.map(([path, ...rest]) => [path, rest]));
    assert.deepEqual(rows.get("http.password"), ["SVC_HTTP_PASSWORD", "****", "conf", true, false]);
    assert.deepEqual(rows.get("pg.password"), ["SVC_PG_PASSWORD", "****", "env", true, true]);
    assert.deepEqual(rows.get("pg.readonly.password"), ["SVC_PG_READONLY_PASSWORD", "****", "env", true, true]);
    told.push(shown.text, (await ask("select 1", "wrong")).text, (await ask("select nothing", "in-the-file-1")).text);
    for (const [user, password] of [["admin", "in-a-file-2"], ["user", "in-the-environment-3"]]) {
      const settings = { host: "127.0.0.1", port: server.pgPort, user, database: "qdb" };
      const client = new pg.Client({ ...settings, password });
      await client.connect();
      told.push(JSON.stringify((await client.query("show parameters")).rows));
      await client.end();
      await assert.rejects(new pg.Client({ ...settings, password: "wrong" }).connect(), (error: Error) => {
        told.push(String(error));
        return true;
      });
    }
    await ask("select simulate_crash('a stack in the log')", "in-the-file-1");
    await ask("select reload_config()", "in-the-file-1");
    for (const url of [`${server.http}/settings`, `http://127.0.0.1:${server.minPort}/metrics`]) {
      told.push(await (await fetch(url)).text());
    }
    await server.stop();
    told.push(server.output());
    assert.match(server.output(), /unknown key SVC_PG_PASWORD; did you mean SVC_PG_PASSWORD\?/);
  }
  const checked = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...DEVELOPMENT_FLAGS, fromFileUrl("../main.ts"), "check-config", "-d", root],
    env,
  }).output();
  const text = new TextDecoder().decode(checked.stdout) + new TextDecoder().decode(checked.stderr);
  assert.equal(checked.code, 0, text);
  assert.match(text, /^http\.password=\*\*\*\* \(conf\)$/m);
  told.push(text);
  for (const secret of ["in-the-file-1", "in-a-file-2", "in-the-environment-3", "in-a-slip-4"]) {
    for (const part of told) assert.ok(!part.includes(secret), `${secret}: ${part.slice(0, 300)}`);
  }
  await Deno.remove(root, { recursive: true });
});
