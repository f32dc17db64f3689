/** A client's settings apply to its session; SHOW, current_setting() and pg_settings show them. */
import assert from "node:assert/strict";
import pg from "pg";
import { startServer, type TestServer } from "./server.ts";
import { pgClient } from "./pg-client.ts";

async function connected(server: TestServer, more: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = pgClient(server, more);
  await client.connect();
  return client;
}

/** The one value. */
async function value(client: pg.Client, sql: string, values: unknown[] = []): Promise<unknown> {
  const { rows } = await client.query({ text: sql, values, rowMode: "array" });
  return rows[0]?.[0];
}

Deno.test("settings of a session", async (t) => {
  await using server = await startServer();
  const client = await connected(server, { options: "-c statement_timeout=90s", application_name: "first" });
  const other = await connected(server);

  await t.step("SHOW tells what SET and the start-up message set", async () => {
    assert.equal(await value(client, "show statement_timeout"), "90s");
    assert.equal(await value(other, "show statement_timeout"), "0");
    for (const [set, shown] of [["1500", "1500ms"], ["'2 min'", "2min"], ["0", "0"], ["default", "90s"]]) {
      await client.query(`set statement_timeout to ${set}`);
      assert.equal(await value(client, "show statement_timeout"), shown, set);
    }
    assert.equal(await value(client, "show application_name"), "first");
    assert.equal(await value(client, "show client_min_messages"), "notice");
    await client.query("set session client_min_messages = 'info'");
    assert.equal(await value(client, "SHOW client_min_messages"), "info");
    assert.equal(await value(client, "select current_setting('Statement_Timeout')"), "90s");
  });

  await t.step("a name that only the session knows", async () => {
    await client.query("set my.setting = 'it''s mine'");
    assert.equal(await value(client, "show my.setting"), "it's mine");
    assert.equal(await value(client, "select current_setting('my.setting')"), "it's mine");
    assert.equal(await value(client, "select current_setting($1)", ["my.setting"]), "it's mine");
    assert.equal(await value(client, "select setting from pg_settings where name = 'my.setting'"), "it's mine");
    await assert.rejects(other.query("show my.setting"), { code: "42601", position: "16" });
    await assert.rejects(other.query("select current_setting('my.setting', false)"), {
      code: "42704",
      position: "24",
      message: "there is no setting my.setting",
    });
    assert.equal(await value(other, "select current_setting('my.setting', true)"), null);
    assert.equal(await value(other, "select current_setting('my.setting')"), "");
    await client.query("reset my.setting");
    await assert.rejects(client.query("show my.setting"));
  });

  await t.step("what SET does not change stays as it is", async () => {
    await client.query("set timezone = 'Europe/Berlin'");
    assert.equal(await value(client, "show time zone"), "UTC");
    await client.query("set transaction isolation level serializable");
    assert.equal(await value(client, "show transaction isolation level"), "read committed");
  });

  await t.step("SET LOCAL ends with its transaction", async () => {
    const timeout = () => value(client, "show statement_timeout");
    for (const end of ["commit", "rollback"]) {
      await client.query("begin");
      await client.query("set local statement_timeout = 1000");
      await client.query("set local statement_timeout to '2s'");
      await client.query("set local my.tenant = 7");
      assert.equal(await timeout(), "2s");
      assert.equal(await value(client, "select current_setting('my.tenant')"), "7");
      await client.query(end);
      assert.equal(await timeout(), "90s", end);
      assert.equal(await value(client, "select current_setting('my.tenant', true)"), null);
    }
    await client.query("set local statement_timeout = 1000");
    assert.equal(await timeout(), "90s", "outside of a transaction");
    await client.query("begin");
    await client.query("set local statement_timeout = 1000");
    await client.query("set statement_timeout = '3s'");
    await client.query("commit");
    assert.equal(await timeout(), "3s", "SET in the transaction");
    await client.query("reset statement_timeout");
    await client.query("begin; set local statement_timeout = 1000");
    await assert.rejects(client.query("select nothing"));
    await client.query("commit");
    assert.equal(await timeout(), "90s", "a failed transaction");
  });

  await t.step("SHOW ALL and pg_settings list the same", async () => {
    const { rows } = await client.query("show all");
    const one = rows.find(({ name }: { name: string }) => name === "statement_timeout");
    assert.equal(one.setting, "90s");
    const listed = await client.query("select name, setting, short_desc description from pg_settings");
    assert.deepEqual(listed.rows, rows);
    assert.equal(await value(client, "select count() from (show all) where setting = 'info'"), "1");
  });

  await t.step("a longer statement, on the planner's thread", async () => {
    const sum = Array.from({ length: 500 }, (_, k) => k).join(" + ");
    assert.equal(await value(client, `select current_setting('application_name') || (${sum})::string`), "first124750");
  });

  await t.step("RESET ALL, and a new application_name", async () => {
    await client.query("set application_name = 'second'");
    assert.equal(await value(other, "select application_name from pg_stat_activity where state = 'idle'"), "second");
    await client.query("reset all");
    assert.equal(await value(client, "show application_name"), "first");
    assert.equal(await value(client, "show client_min_messages"), "notice");
    assert.equal(await value(client, "show statement_timeout"), "90s");
  });

  await t.step("refuses too many and too long ones, and continues", async () => {
    await assert.rejects(client.query(`set a.b = '${"x".repeat(9_000)}'`), { code: "54000" });
    for (let k = 0; k < 200; k++) await client.query(`set x.n${k} = 1`);
    await assert.rejects(async () => {
      for (let k = 200; k < 300; k++) await client.query(`set x.n${k} = 1`);
    }, { code: "54000" });
    await assert.rejects(client.query("set statement_timeout = 'soon'"), { code: "22023" });
    assert.equal(await value(client, "show statement_timeout"), "90s");
  });
  await client.end();
  await other.end();

  await t.step("over HTTP they are the server's", async () => {
    assert.deepEqual((await server.exec("show statement_timeout")).dataset, [["0"]]);
    assert.equal(
      (await server.exec("show statement_timeouts")).error,
      "SHOW does not know statement_timeouts; did you mean statement_timeout?",
    );
  });
});

Deno.test("pg_stat_activity lists connections", async () => {
  await using server = await startServer();
  const client = await connected(server, { application_name: "watched" });
  const watcher = await connected(server);
  const watched = async () => {
    const { rows } = await watcher.query("select * from pg_stat_activity where application_name = 'watched'");
    return rows[0];
  };
  const fresh = await watched();
  assert.deepEqual([fresh.state, fresh.query, fresh.query_id, fresh.xact_start], ["idle", "", null, null]);
  assert.equal(fresh.pid, await value(client, "select pg_backend_pid()"));
  assert.ok(fresh.backend_start instanceof Date && fresh.client_port > 0);
  const idle = await watched();
  assert.deepEqual([idle.state, idle.query, idle.wait_event], ["idle", "select pg_backend_pid()", "ClientRead"]);
  assert.ok(idle.query_start >= fresh.backend_start && idle.state_change >= idle.query_start);
  await client.query("begin");
  const open = await watched();
  assert.deepEqual([open.state, open.query], ["idle in transaction", "begin"]);
  assert.ok(open.xact_start instanceof Date);
  await assert.rejects(client.query("select nothing"));
  assert.equal((await watched()).state, "idle in transaction (aborted)");
  await client.query("rollback");
  assert.deepEqual([(await watched()).state, (await watched()).xact_start], ["idle", null]);
  // The asking session itself is active.
  assert.equal(await value(watcher, "select state from pg_stat_activity where pid = pg_backend_pid()"), "active");
  await client.end();
  assert.equal(await watched(), undefined);
  await watcher.end();
});
