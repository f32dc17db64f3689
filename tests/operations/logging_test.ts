/** What a server writes into its log, and where it looks for log.conf. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { startServer, type TestServer } from "../server.ts";

const ROLLING = {
  SVC_LOG_WRITERS: "file",
  SVC_LOG_W_FILE_CLASS: "io.service.log.LogRollingFileWriter",
  SVC_LOG_W_FILE_LOCATION: "${log.dir}/${INSTANCE_NAME}-${date:yyyy}.log",
  SVC_LOG_W_FILE_LEVEL: "INFO",
  SVC_DEV_MODE_ENABLED: "true",
  INSTANCE_NAME: "one",
};
const logOf = ({ root }: TestServer) => Deno.readTextFileSync(join(root, "log", `one-${new Date().getFullYear()}.log`));
const exists = (...path: string[]) => Deno.stat(join(...path)).then(() => true, () => false);

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  Deno.test(`log: all is in the file after ${signal}, an error that nobody caught too`, async () => {
    await using server = await startServer({ env: ROLLING });
    await server.exec("select simulate_crash('at the end')");
    server.process.kill(signal);
    assert.equal((await server.process.status).code, 0);
    const lines = logOf(server);
    assert.match(lines, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z A server-main Sundial /);
    assert.match(lines, / C server-main unhandled error: Error: simulated crash: at the end\n/);
    assert.match(lines, new RegExp(`Z A server-main ${signal}: shutting down\\r\\n`));
    assert.match(lines, /Z A server-main everything is on disk: goodbye\r\n$/);
    assert.equal(server.output(), "", "nothing goes to the console");
  });
}

Deno.test("log: conf/log.conf is made with the defaults; -Dout names another file, which is never made", async () => {
  await using plain = await startServer();
  const made = Deno.readTextFileSync(join(plain.root, "conf", "log.conf"));
  assert.match(made, /^writers=file,stdout,http\.min$/m);
  const directory = await Deno.makeTempDir({ prefix: "sundial-" });
  const [there, missing] = [join(directory, "there.conf"), join(directory, "missing.conf")];
  Deno.writeTextFileSync(there, "writers=out\nw.out.class=LogConsoleWriter\nw.out.level=ADVISORY\n");
  {
    await using server = await startServer({ args: [`-Dout=${there}`] });
    assert.ok(!await exists(server.root, "conf", "log.conf"));
    assert.doesNotMatch(server.output(), /Z I /);
    assert.match(server.output(), /Z A server-main root: /);
  }
  {
    await using server = await startServer({ args: [`-Dout=${missing}`] });
    assert.ok(!await exists(server.root, "conf", "log.conf") && !await exists(missing));
    assert.ok(server.output().includes(`using factory defaults: ${missing} does not exist`), server.output());
  }
  await Deno.remove(directory, { recursive: true });
});
