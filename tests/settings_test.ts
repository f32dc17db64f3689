/** Every setting is read somewhere, or documented to have no effect. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { SECTIONS } from "../src/command/settings.ts";
import { Catalogue, isSetting, type Setting } from "../src/config/mod.ts";
import { fromFileUrl } from "./paths.ts";
import { startServer } from "./server.ts";

const REPOSITORY = fromFileUrl("../");

function sources(directory: string): string[] {
  return [...Deno.readDirSync(join(REPOSITORY, directory))].flatMap(({ name, isDirectory }) => {
    const path = `${directory}/${name}`;
    if (isDirectory) return sources(path);
    return /\.ts$/.test(name) && !/_test\.ts$/.test(name) ? [path] : [];
  });
}

/** The settings of a group, by the names under which they are read. */
function named(group: object): [name: string, setting: Setting<unknown>][] {
  return Object.entries(group).flatMap(([name, entry]) => isSetting(entry) ? [[name, entry]] : named(entry));
}

Deno.test("every setting is read, or documented to have no effect", () => {
  const text = sources("src").map((path) => Deno.readTextFileSync(join(REPOSITORY, path))).join("\n");
  const all = SECTIONS.flatMap(({ settings }) => settings.flatMap(named));
  assert.deepEqual(new Set(all.map(([, { key }]) => key)), new Set(new Catalogue(SECTIONS).settings.keys()));
  const unread = all.filter(([name, { isIgnored }]) => {
    // `options.name`, `{ name } = options` and a list of settings are reads; `name: int("key", …)` declares.
    const read = new RegExp(`\\.${name}\\b|\\{[^{}()]*\\b${name}\\b[^{}()]*\\} =`);
    return !isIgnored && !/^\d$/.test(name) && !read.test(text);
  });
  assert.deepEqual(unread.map(([, { key }]) => key), []);
});

Deno.test("settings of the wires and of statements take effect", async () => {
  await using server = await startServer({
    env: {
      SVC_INSTANCE_NAME: "left",
      SVC_HTTP_CONTEXT_WEB_CONSOLE: "/sundial",
      SVC_HTTP_CONTEXT_EXECUTE: "/exec,/run",
      SVC_HTTP_REDIRECT_COUNT: "2",
      SVC_HTTP_REDIRECT_2: "/old -> /sundial/index.html",
      SVC_HTTP_EXPORT_CONNECTION_LIMIT: "0",
      SVC_LINE_FLOAT_DEFAULT_COLUMN_TYPE: "FLOAT",
      SVC_LINE_INTEGER_DEFAULT_COLUMN_TYPE: "INT",
      SVC_QUERY_TRACING_ENABLED: "true",
      SVC_LOG_SQL_QUERY_PROGRESS_EXE: "true",
      SVC_CAIRO_STATEMENT_CACHE_SIZE: "0",
      SVC_PG_RECV_BUFFER_SIZE: "16k",
      SVC_PG_SEND_BUFFER_SIZE: "2k",
    },
  });
  const status = async (path: string) => {
    const reply = await fetch(`${server.http}${path}`, { redirect: "manual" });
    await reply.body?.cancel();
    return [reply.status, reply.headers.get("location")];
  };
  assert.deepEqual(await status("/sundial/"), [301, "/sundial/index.html"]);
  assert.deepEqual(await status("/old"), [301, "/sundial/index.html"]);
  assert.deepEqual(await status("/sundial/index.html"), [200, null]);
  assert.deepEqual(await status("/run?query=select%201"), [200, null]);
  assert.deepEqual(await status("/settings"), [404, null]);
  assert.equal((await (await fetch(`${server.http}/sundial/settings`)).json()).config["instance.name"], "left");
  assert.deepEqual(await status("/sundial/exp?query=select%201"), [429, null]);

  const written = await fetch(`${server.http}/write`, { method: "POST", body: "t f=1.5,i=2i 1000000000\n" });
  assert.equal(written.status, 204);
  const { columns } = await server.exec("select f, i from t");
  assert.deepEqual(columns?.map(({ type }) => type), ["FLOAT", "INT"]);
  const faulty = await fetch(`${server.http}/write`, { method: "POST", body: "t f=1.5 1\nt f=oops 2\n" });
  assert.equal((await faulty.json()).line, 2);
  /** The server's output may arrive a moment after its reply. */
  const printed = async (pattern: RegExp) => {
    for (let attempt = 0; attempt < 100 && !pattern.test(server.output()); attempt++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.match(server.output(), pattern);
  };
  await printed(/E http-server line protocol: line 2: .*: t f=oops 2/);

  await server.exec("select i + 1 from t");
  await server.exec("select nothing from t");
  await printed(/I database exe \[id=\d+, sql=`select i \+ 1 from t`, principal=admin\]/);
  await printed(/I database fin \[id=\d+, sql=`select i \+ 1 from t`, principal=admin, micros=\d+\]/);
  let traced: unknown[][] | undefined = [];
  for (let attempt = 0; attempt < 100 && (traced ?? []).length === 0; attempt++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const sql = "select principal, execution_micros > 0 ok from _query_trace where query_text = 'select i + 1 from t'";
    traced = (await server.exec(sql)).dataset;
  }
  assert.deepEqual(traced, [["admin", true]]);
});
