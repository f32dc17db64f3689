/** CRITICAL messages of a running server arrive at real Alertmanagers. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { freePort, startServer } from "../server.ts";
import { installed, type Program, startProgram, until } from "../programs.ts";

/** Debian's, and a current one if it is on the PATH, as with `.ci/run`. */
const alertmanagers = await installed(["prometheus-alertmanager", "alertmanager"], "alerts");

interface Alert {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  status: { state: string };
}

for (const name of alertmanagers) {
  const startAlertmanager = (port = freePort()) =>
    startProgram(name, (port, directory) => {
      const config = join(directory, "alertmanager.yml");
      Deno.writeTextFileSync(config, "route: { receiver: none }\nreceivers: [{ name: none }]\n");
      return [
        `--config.file=${config}`,
        `--storage.path=${directory}/data`,
        `--web.listen-address=127.0.0.1:${port}`,
        // Without a cluster.
        "--cluster.listen-address=",
      ];
    }, port);

  Deno.test(`${name} lists alerts, also after a fail-over and after a restart of the server`, async () => {
    const root = await Deno.makeTempDir({ prefix: "sundial-" });
    const ports = [freePort(), freePort()];
    const options = {
      root,
      env: {
        SVC_DEV_MODE_ENABLED: "true",
        SVC_LOG_WRITERS: "stdout,alert",
        SVC_LOG_W_ALERT_CLASS: "io.service.log.LogAlertSocketWriter",
        SVC_LOG_W_ALERT_LEVEL: "CRITICAL",
        SVC_LOG_W_ALERT_ALERTTARGETS: ports.map((port) => `127.0.0.1:${port}`).join(","),
        SVC_LOG_W_ALERT_RECONNECTDELAY: "50",
        CLUSTER_NAME: 'the "west"',
        // Alerts must bypass the proxy.
        HTTP_PROXY: `http://127.0.0.1:${freePort()}`,
        http_proxy: `http://127.0.0.1:${freePort()}`,
      },
    };
    const queue = join(root, "log", "alert-alerts.queue");
    {
      await using first = await startAlertmanager(ports[0]);
      await using second = await startAlertmanager(ports[1]);
      const both = [first, second];
      await using server = await startServer(options);
      const crash = (text: string) => server.exec(`select simulate_crash('${text.replaceAll("'", "''")}')`);

      const text = `say "hi" to C:\\temp, \${HOME}, 'all' and ü`;
      await crash(text);
      const { taker, alert } = await until("one of them lists it", () => find(both, text));
      assert.equal(alert.status.state, "active");
      const { alertTimestamp, version: _, ...labels } = alert.labels;
      assert.deepEqual(labels, {
        alertname: "SundialInstanceLogs",
        service: "Sundial",
        category: "application-logs",
        severity: "critical",
        cluster: 'the "west"',
        orgid: "GLOBAL",
        namespace: "GLOBAL",
        instance: "GLOBAL",
      });
      assert.match(alertTimestamp, /^\d{4}\/\d\d\/\d\dT\d\d:\d\d:\d\d\.\d{3}$/);
      // The log has the whole message, including the stack.
      await until(
        `the log has ${alert.annotations.message}`,
        () => server.output().replaceAll("\r\n", "\n").includes(alert.annotations.message),
      );

      await taker.kill();
      const other = both.find((program) => program !== taker)!;
      await Promise.all(["after a fall 1", "after a fall 2"].map(crash));
      await until("the other one lists the next ones", async () => {
        const messages = (await listed(other)).map((alert) => alert.annotations.message).join("\n");
        return messages.includes("after a fall 1") && messages.includes("after a fall 2");
      });
      await until(
        "the log tells of it",
        () => /failing over from 127\.0\.0\.1:\d+ to 127\.0\.0\.1:\d+: /.test(server.output()),
      );

      await other.kill();
      await crash("nobody is there");
      await until(
        "the log tells of it",
        () => server.output().includes(`no target accepts alerts: 1 are waiting in ${queue}`),
      );
      await crash("still nobody");
      assert.deepEqual((await server.exec("select 1")).dataset, [[1]]);
    }
    // The first line is the format version.
    assert.equal(Deno.readTextFileSync(queue).trim().split("\n").length, 1 + 2);
    {
      await using first = await startAlertmanager(ports[0]);
      await using _server = await startServer(options);
      await until("what waited on disk is listed", async () => {
        const messages = (await listed(first)).map((alert) => alert.annotations.message).join("\n");
        return messages.includes("nobody is there") && messages.includes("still nobody");
      });
      await until("the queue is empty", () => Deno.statSync(queue).size === 0);
    }
    await Deno.remove(root, { recursive: true });
  });
}

async function listed({ port }: Program): Promise<Alert[]> {
  return await (await fetch(`http://127.0.0.1:${port}/api/v2/alerts`)).json();
}

async function find(programs: Program[], text: string): Promise<{ taker: Program; alert: Alert } | undefined> {
  for (const taker of programs) {
    const alert = (await listed(taker)).find((alert) => alert.annotations.message.includes(text));
    if (alert) return { taker, alert };
  }
}
