import assert from "node:assert/strict";
import { configOf } from "../../command/testing.ts";
import { probeHealth } from "./probe.ts";
import { serveHealth } from "./server.ts";

Deno.test("probeHealth() uses the credentials of the settings, and the loopback adapter if the server listens on all", async () => {
  let healthy = true;
  const server = await serveHealth({
    hostname: "0.0.0.0",
    port: 0,
    connectionLimit: 1,
    connectionTimeoutMs: 10_000,
    queueTimeoutMs: 1000,
    credentials: { user: "ann", password: "secret" },
    fault: () => healthy ? undefined : "",
    onError: (error) => assert.fail(error as Error),
  });
  const settings = { "http.min.bind.to": `0.0.0.0:${server.port}`, "http.user": "ann", "http.password": "secret" };
  const asking = { ...settings, "http.health.check.authentication.required": "true" };
  const url = `http://127.0.0.1:${server.port}/`;
  try {
    assert.deepEqual(await probeHealth(configOf(asking)), { isHealthy: true, said: `healthy: 200 from ${url}` });
    const wrong = await probeHealth(configOf({ ...asking, "http.password": "other" }));
    assert.deepEqual(wrong, { isHealthy: false, said: `not healthy: 401 from ${url}` });
    healthy = false;
    const ill = await probeHealth(configOf(asking));
    assert.deepEqual(ill, { isHealthy: false, said: `not healthy: 500 from ${url}` });
  } finally {
    await server.close();
  }
  const gone = await probeHealth(configOf(asking));
  assert.equal(gone.isHealthy, false);
  assert.match(gone.said, /no answer from .*refused/i);
});

Deno.test("probeHealth() cannot know a port that the system chose", async () => {
  await assert.rejects(probeHealth(configOf({ "http.min.bind.to": "127.0.0.1:0" })), { key: "http.min.bind.to" });
});
