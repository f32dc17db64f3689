import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { AlertOutput, type AlertSettings } from "./alerts.ts";
import { parseAlertTemplate } from "./alert-template.ts";
import { setReceiver } from "./logger.ts";
import { Log } from "./mod.ts";

const NOON = Date.UTC(2026, 10, 21, 9, 56, 12, 388) * 1000 + 239;
const shipped = Deno.readTextFileSync(new URL("../../conf/alert-manager-tpl.json", import.meta.url));

Deno.test("template: names are filled in and escaped, other braces stay", () => {
  const template = parseAlertTemplate(
    '["${ALERT_MESSAGE}", "${ORGID} ${HOME_X} ${ unknown } ${date: yyyy-MM-dd}", "${SVC_VERSION}"]',
    { HOME_X: 'a"b' },
    "1.2",
  );
  assert.deepEqual(JSON.parse(template.fill('say "hi"\\\r\n\t$', NOON)), [
    'say "hi"\\\r\n\t$',
    'GLOBAL a"b ${ unknown } 2026-11-21',
    "1.2",
  ]);
  assert.throws(() => parseAlertTemplate("[${ALERT_MESSAGE}", {}, ""), SyntaxError);
});

Deno.test("the shipped template is an array of one alert", () => {
  const [alert] = JSON.parse(parseAlertTemplate(shipped, { CLUSTER_NAME: "c" }, "0.1.0").fill("boom", NOON));
  assert.deepEqual(Object.keys(alert), ["Status", "Labels", "Annotations"]);
  assert.deepEqual([alert.Labels.version, alert.Labels.cluster, alert.Labels.orgid, alert.Labels.alertTimestamp], [
    "0.1.0",
    "c",
    "GLOBAL",
    "2026/11/21T09:56:12.388",
  ]);
  assert.equal(alert.Annotations.message, "boom");
});

function scene(answers: Record<string, () => number>) {
  const directory = Deno.makeTempDirSync();
  const taken: string[] = [];
  const settings: AlertSettings = {
    targets: Object.keys(answers).map((hostname) => ({ hostname, port: 9093 })),
    template: parseAlertTemplate('["${ALERT_MESSAGE}"]', {}, ""),
    messageBytesMax: 100,
    queuePath: join(directory, "alerts.queue"),
    queueBytesMax: 1000,
    reconnectDelayMs: 1,
    firstTarget: 0,
    post: ({ hostname }, body) => {
      const status = answers[hostname]();
      if (status === 0) return Promise.reject(new Error("connection refused"));
      if (status < 300) taken.push(`${hostname} ${JSON.parse(body)[0]}`);
      return Promise.resolve(status);
    },
  };
  return { settings, taken };
}
const line = (text: string) => ({ timeMicros: NOON, level: "CRITICAL" as const, text: `${text}\r\n` });
async function until(holds: () => boolean): Promise<void> {
  for (const end = Date.now() + 5000; !holds();) {
    assert.ok(Date.now() < end, "did not come true in 5 s");
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

Deno.test("alerts: 2xx delivers, a 500 or a refused connection fails over, and the new target is kept", async () => {
  let first = 200;
  const { settings, taken } = scene({ a: () => first, b: () => 202 });
  const output = new AlertOutput(settings);
  await output.write([line("1")]);
  await until(() => taken.length === 1);
  first = 500;
  await output.write([line("2")]);
  await until(() => taken.length === 2);
  first = 200;
  await output.write([line("3")]);
  await until(() => taken.length === 3);
  await output.close();
  assert.deepEqual(taken, ["a 1", "b 2", "b 3"]);
});

Deno.test("alerts: several in one millisecond get distinct times", async () => {
  const { settings } = scene({ a: () => 200 });
  const times: string[] = [];
  const output = new AlertOutput({
    ...settings,
    template: parseAlertTemplate('["${date: HH:mm:ss.SSS}"]', {}, ""),
    post: (_, body) => Promise.resolve(200 + 0 * times.push(JSON.parse(body)[0])),
  });
  await output.write([line("1"), line("2"), line("3")]);
  await until(() => times.length === 3);
  await output.close();
  assert.deepEqual(times, ["09:56:12.388", "09:56:12.389", "09:56:12.390"]);
});

Deno.test("alerts: with all targets down they wait on disk, survive a restart, and are sent in order", async () => {
  let up = false;
  const { settings, taken } = scene({ a: () => up ? 200 : 0, b: () => up ? 200 : 503 });
  const before = new AlertOutput({ ...settings, reconnectDelayMs: 60_000 });
  await before.write([line("1"), line("2")]);
  await before.close();
  assert.equal(taken.length, 0);
  Deno.writeTextFileSync(settings.queuePath, '"[\\"torn', { append: true });
  up = true;
  const after = new AlertOutput(settings);
  await until(() => taken.length === 2);
  await after.write([line("3")]);
  await until(() => taken.length === 3);
  await after.close();
  assert.deepEqual(taken.map((text: string) => text.slice(2)), ["1", "2", "3"]);
  assert.equal(Deno.readTextFileSync(settings.queuePath), "");
});

Deno.test("alerts: an unreachable target is retried after reconnectDelay each time, and logged once", async () => {
  let up = false;
  const { settings, taken } = scene({ a: () => up ? 200 : 0 });
  const pausesMs: number[] = [], lines: string[] = [];
  setReceiver(({ message }) => lines.push(message));
  const output = new AlertOutput({
    ...settings,
    reconnectDelayMs: 250,
    pause: (timeMs) => {
      up = pausesMs.push(timeMs) === 5;
      return Promise.resolve();
    },
  });
  await output.write([line("1")]);
  await until(() => taken.length === 1);
  await output.close();
  setReceiver(undefined);
  assert.deepEqual(pausesMs, [250, 250, 250, 250, 250]);
  assert.deepEqual(lines, [
    "a:9093 did not accept an alert: connection refused",
    `no target accepts alerts: 1 are waiting in ${settings.queuePath}`,
    "alerts are delivered again, 0 are waiting",
  ]);
});

Deno.test("alerts: a delay is clamped to the range of a timer", async () => {
  for (const [reconnectDelayMs, pauseMs] of [[0, 10], [40 * 86_400_000, 2 ** 31 - 1]]) {
    let up = false;
    const { settings, taken } = scene({ a: () => up ? 200 : 0 });
    const pausesMs: number[] = [];
    const pause = (timeMs: number) => Promise.resolve(void (up = pausesMs.push(timeMs) > 0));
    const output = new AlertOutput({ ...settings, reconnectDelayMs, pause });
    await output.write([line("1")]);
    await until(() => taken.length === 1);
    await output.close();
    assert.deepEqual(pausesMs, [pauseMs]);
  }
});

Deno.test("alerts: a full disk does not stop delivery to a reachable target, and is logged once", async () => {
  const { settings, taken } = scene({ a: () => 200 });
  const lines: string[] = [];
  setReceiver(({ message }) => lines.push(message));
  const directory = dirname(settings.queuePath);
  const output = new AlertOutput(settings);
  Deno.removeSync(directory, { recursive: true });
  await output.write([line("1")]);
  await output.write([line("2")]);
  await until(() => taken.length === 2);
  Deno.mkdirSync(directory);
  await output.write([line("3")]);
  await until(() => taken.length === 3);
  await output.close();
  setReceiver(undefined);
  assert.deepEqual(taken, ["a 1", "a 2", "a 3"]);
  assert.equal(lines.length, 1);
  assert.match(lines[0], /^alerts wait in memory only: .*alerts\.queue/);
  assert.equal(Deno.readTextFileSync(settings.queuePath), "");
});

Deno.test("alerts: a queue that cannot be written stops the start with the name of the file", () => {
  const options = checkConf(conf(""));
  Deno.removeSync(join(options.root, "log"));
  assert.throws(() => new Log(options), { key: "w.alert.class", message: /^w\.alert: .*alert-alerts\.queue/ });
});

Deno.test("alerts: a queue of the previous format is sent; one of a newer format is refused with advice", async () => {
  const { settings, taken } = scene({ a: () => 200 });
  const bodies = ["1", "2"].map((text) => JSON.stringify(settings.template.fill(text, 0)) + "\n").join("");
  Deno.writeTextFileSync(settings.queuePath, bodies);
  const output = new AlertOutput(settings);
  await until(() => taken.length === 2);
  await output.close();
  Deno.writeTextFileSync(settings.queuePath, `{"format":2}\n${bodies}`);
  assert.throws(() => new AlertOutput(settings), {
    name: "ConfigError",
    message: `${settings.queuePath} was written by a newer version (format 2; this one reads up to 1): ` +
      "start that version again until its alerts are delivered, or move the file away",
  });
  assert.equal(Deno.readTextFileSync(settings.queuePath), `{"format":2}\n${bodies}`, "and stays as it is");
});

Deno.test("alerts: the queue is bounded and drops the oldest; a refused alert does not hold up others", async () => {
  let refusing = true;
  const { settings, taken } = scene({ a: () => refusing ? 400 : 200 });
  const output = new AlertOutput({ ...settings, queueBytesMax: 30 });
  await output.write(["1", "2", "3", "4", "5", "6", "7", "8"].map(line));
  refusing = false;
  await until(() => taken.length === 6);
  await output.close();
  assert.deepEqual(taken.map((text) => text.slice(2)).sort(), ["3", "4", "5", "6", "7", "8"]);
});

const conf = (rest: string) =>
  `writers=alert\nw.alert.class=io.questdb.log.LogAlertSocketWriter\nw.alert.level=CRITICAL\n${rest}`;
function checkConf(text: string, root = Deno.makeTempDirSync()) {
  Deno.mkdirSync(join(root, "conf"));
  Deno.mkdirSync(join(root, "log"));
  Deno.writeTextFileSync(join(root, "conf", "log.conf"), text);
  return { root, env: {}, defaults: "", alertTemplate: shipped };
}

const twelve = Array.from({ length: 12 }, (_, index) => `h${index}:${index + 1}`).join(",");
Deno.test("alerts: up to twelve targets are accepted, in every notation", () => {
  assert.deepEqual(Log.check(checkConf(conf(`w.alert.alertTargets=${twelve}`))).faults, []);
  assert.deepEqual(Log.check(checkConf(conf('w.alert.alertTargets="a, :1, b:2, [::1]:3"'))).faults, []);
  assert.deepEqual(Log.check(checkConf(conf(""))).faults, []);
});
const refused: [string, string][] = [
  [conf(`w.alert.alertTargets=${twelve},one-more`), "w.alert.alertTargets"],
  [conf("w.alert.alertTargets=a:b"), "w.alert.alertTargets"],
  [conf("w.alert.defaultAlertPort=0"), "w.alert.defaultAlertPort"],
  [conf("w.alert.location=conf/none.json"), "w.alert.location"],
  [conf("w.alert.reconnectDelay=soon"), "w.alert.reconnectDelay"],
  ["writers=alert\nw.alert.class=LogAlertSocketWriter", "w.alert.level"],
];
for (const [text, key] of refused) {
  Deno.test(`alerts: refused at the start: ${text.split("\n").at(-1)}`, () =>
    assert.deepEqual(Log.check(checkConf(text)).faults.map((fault) => fault.key), [key]));
}

Deno.test("alerts: only CRITICAL messages are sent, over a real connection", async () => {
  const bodies: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    bodies.push(
      `${request.method} ${new URL(request.url).pathname} ${request.headers.get("content-type")} ${await request
        .text()}`,
    );
    return new Response("{}");
  });
  const log = new Log(checkConf(conf(`w.alert.alertTargets=127.0.0.1:${server.addr.port}`)));
  for (const level of ["ADVISORY", "CRITICAL", "ERROR"] as const) {
    log.receive({ timeMicros: NOON, level, logger: "x", message: level });
  }
  await until(() => bodies.length === 1);
  await log.close();
  await server.shutdown();
  assert.match(bodies[0], /^POST \/api\/v2\/alerts application\/json \[/);
  assert.match(bodies[0], /"message": "2026-11-21T09:56:12\.388239Z C x CRITICAL"/);
});
