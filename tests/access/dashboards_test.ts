/** Dashboards have owners, and are shared without giving anybody more rights than their own. */
import assert from "node:assert/strict";
import { ADMIN, basic, type Credentials, startProtected } from "./server.ts";

const ADA: Credentials = { name: "ada", password: "ada's" };
const BOB: Credentials = { name: "bob", password: "bob's" };
const CLEO: Credentials = { name: "cleo", password: "cleo's" };

Deno.test("dashboards", async (t) => {
  await using server = await startProtected();
  await server.set(
    "create table secrets (x int)",
    ...[ADA, BOB, CLEO].flatMap(({ name, password }) => [
      `create user ${name} with password '${password.replace("'", "''")}'`,
      `grant http to ${name}`,
    ]),
    "create group analysts",
    "add user bob to analysts",
  );
  const ask = async (
    as: Credentials,
    method: string,
    { id, ...body }: Record<string, unknown> & { id?: string } = {},
  ) => {
    const isPost = method === "POST";
    const path = `/api/v1/dashboards${id === undefined || isPost ? "" : `?id=${id}`}`;
    const init = { method, ...isPost && { body: JSON.stringify({ id, ...body }) } };
    const { status, text } = await server.request(path, basic(as), init);
    return { status, ...JSON.parse(text) };
  };
  const names = async (as: Credentials) =>
    (await ask(as, "GET")).dashboards.map((one: { name: string }) => one.name).join();
  assert.deepEqual(await ask(ADA, "GET"), { status: 200, dashboards: [] });
  const fields = { name: "prices", definition: '{"panels":[]}', sharedWith: [] as string[] };
  const made = await ask(ADA, "POST", fields);
  const { id } = made;

  await t.step("its owner and administrators see it, others do not learn that it exists", async () => {
    assert.deepEqual([made.owner, made.version, made.canEdit], ["ada", 1, true]);
    assert.deepEqual([await names(ADA), await names(ADMIN), await names(BOB)], ["prices", "prices", ""]);
    assert.equal((await ask(ADA, "GET", { id })).definition, fields.definition);
    const unknown = { status: 404, error: `dashboard ${id} does not exist, or is not shared with you` };
    assert.deepEqual(await ask(BOB, "GET", { id }), unknown);
    assert.deepEqual(await ask(BOB, "POST", { ...fields, id, version: 1 }), unknown);
    assert.deepEqual(await ask(BOB, "DELETE", { id }), unknown);
  });

  await t.step("it is shared with users, groups or everybody, who may not change it", async () => {
    assert.equal((await ask(ADA, "POST", { ...fields, id, version: 1, sharedWith: ["analysts"] })).version, 2);
    assert.deepEqual([await names(BOB), await names(CLEO)], ["prices", ""]);
    const { canEdit, sharedWith } = await ask(BOB, "GET", { id });
    assert.deepEqual([canEdit, sharedWith], [false, []]);
    const denied = { status: 403, error: "bob may not change the dashboard prices, which belongs to ada" };
    assert.deepEqual(await ask(BOB, "POST", { ...fields, id, version: 2 }), denied);
    assert.deepEqual(await ask(BOB, "DELETE", { id }), denied);
    await ask(ADA, "POST", { ...fields, id, version: 2, sharedWith: ["*"] });
    assert.equal(await names(CLEO), "prices");
  });

  await t.step("a change of an older version is refused", async () => {
    const { status, error } = await ask(ADA, "POST", { ...fields, id, version: 1 });
    assert.deepEqual([status, error], [
      409,
      "the dashboard was changed in the meantime: version 1 was opened, 3 is stored",
    ]);
  });

  await t.step("statements of panels run with the viewer's rights, and only if they read", async () => {
    const run = async (as: Credentials, query: string) => {
      const parameters = new URLSearchParams({ query, readOnly: "true" });
      return (await server.request(`/exec?${parameters}`, basic(as))).text;
    };
    assert.match(await run(ADA, "select x from secrets"), /Access denied|no table/);
    assert.match(await run(ADMIN, "select x from secrets"), /"count":0/);
    for (
      const text of [
        "drop table secrets",
        "insert into secrets values (1)",
        "grant all to ada",
        "select reload_config()",
        "explain analyze insert into secrets values (1)",
        "set x = 1",
        "checkpoint create",
      ]
    ) {
      assert.match(await run(ADMIN, text), /only statements that read data are allowed here/, text);
    }
    assert.match(await run(ADMIN, "select count() from secrets"), /\[\[0\]\]/);
  });

  await t.step("the table is the administrators' alone, and bad bodies and long ones are refused", async () => {
    assert.match((await server.sql("select * from _dashboards", ADA)).error!, /_dashboards/);
    assert.equal((await server.sql("select name, owner from _dashboards")).dataset!.join(), "prices,ada");
    const statusOf = async (body: string) =>
      (await server.request("/api/v1/dashboards", basic(ADA), { method: "POST", body })).status;
    assert.deepEqual(
      [await statusOf("{"), await statusOf("null"), await statusOf('{"name": 1}'), await statusOf('{"name": "x"}')],
      [400, 400, 400, 400],
    );
    assert.equal(await statusOf(JSON.stringify({ ...fields, definition: "x".repeat(300_000) })), 400);
    assert.equal(await statusOf(JSON.stringify({ ...fields, name: " " })), 400);
  });

  await t.step("a later user of the same name is another owner; a dropped dashboard is gone", async () => {
    await server.set("drop user ada", "create user ada with password 'ada''s'", "grant http to ada");
    assert.deepEqual((await ask(ADA, "GET", { id })).canEdit, false);
    assert.deepEqual(await ask(ADMIN, "DELETE", { id }), { status: 200 });
    assert.equal(await names(CLEO), "");
  });
});
