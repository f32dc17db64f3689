/** The server's own state as tables. */
import assert from "node:assert/strict";
import { until } from "../programs.ts";
import { basic, startProtected } from "../access/server.ts";

Deno.test("server_metrics() and recent_errors() tell administrators what /metrics and the log tell", async () => {
  await using server = await startProtected();
  await server.set(
    "create table t (x long, ts timestamp) timestamp(ts)",
    "insert into t values (1, '2026-01-01'), (2, '2026-01-02')",
    "create user ada with password 'ada''s'",
    "grant http to ada",
  );
  const { dataset } = await server.sql("select name, kind, label, le, value from server_metrics()");
  const rows = new Map(dataset!.map(([name, kind, label, le, value]) => [`${name} ${label} ${le}`, { kind, value }]));
  assert.deepEqual(rows.get("service_rows_in_total exec null"), { kind: "counter", value: 2 });
  assert.equal(rows.get("service_query_seconds_bucket exec 60")?.kind, "histogram");
  assert.ok(rows.get("service_query_seconds_bucket exec null")!.value as number >= 4, "all statements");
  const free = rows.get("service_disk_free_bytes null null")!.value as number;
  assert.ok(free > 0 && free <= (rows.get("service_disk_size_bytes null null")!.value as number));

  await server.sql("select nothing from t where 'password=secret' = ''");
  const errors = async () => (await server.sql("select * from recent_errors()")).dataset!;
  await until(
    "the error is told",
    async () => (await errors()).some(([, , , message]) => `${message}`.includes("nothing")),
  );
  const [timestamp, level, logger, message] = (await errors())[0];
  assert.ok(Math.abs(Date.parse(`${timestamp}`) - Date.now()) < 60_000);
  assert.deepEqual([level, logger], ["INFO", "http-server"]);
  assert.match(`${message}`, /^err \[sql=`select nothing .*principal=admin, msg=.*state=42703\]$/);

  const ada = { name: "ada", password: "ada's" };
  for (const source of ["server_metrics", "recent_errors", "pending_config"]) {
    const { status, error } = await server.sql(`select * from ${source}()`, ada);
    assert.deepEqual([status, error], [403, "Access denied for ada [SYSTEM ADMIN]"]);
  }
  assert.equal((await server.request("/exec?query=select+1", basic(ada))).status, 200);
});
