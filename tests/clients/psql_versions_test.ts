/** psql of several versions sends other queries for the same commands: each must be answered. `.ci/run` installs the versions. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { installed } from "../programs.ts";
import { startServer } from "../server.ts";
import { runPsql } from "./psql.ts";

const SITE_PACKAGES = join(
  Deno.env.get("XDG_CACHE_HOME") ?? join(Deno.env.get("HOME") ?? "", ".cache"),
  "sundial-ci/python/lib",
);

/** Those of Python packages that hold PostgreSQL: 16 and 18. */
function* packaged(): Generator<string> {
  for (const name of ["pgserver", "embedded_postgres"]) {
    try {
      const [python] = [...Deno.readDirSync(SITE_PACKAGES)];
      const program = join(SITE_PACKAGES, python.name, "site-packages", name, "pginstall/bin/psql");
      if (Deno.statSync(program).isFile) yield program;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      console.log(`skipped: psql of the Python package ${name} is not installed`);
    }
  }
}

const COMMANDS = [
  "d t s di dm v n l u g f a T p ddp b c C D es et eu ew F Fd Fp Ft L l o O P rds rg Rp Rs x X y A Ac Ao Ap E config S tS",
  "d+ t+ i+ m+ v+ s+ n+ l+ u+ f+ T+ b+ c+ C+ es+ et+ eu+ ew+ F+ Fd+ L+ o+ O+ Rp+ Rs+ x+ y+ Ac+ Ao+ Ap+ config+",
].flatMap((line) => line.split(" ")).map((name) => name === "d" || name === "d+" ? `\\${name}` : `\\d${name}`);
const NAMED = [
  "\\d t",
  "\\d+ t",
  "\\d public.t",
  "\\d other",
  "\\d pg_class",
  "\\dt t",
  "\\dt public.*",
  "\\df version",
];
const MORE = [
  "\\l",
  "\\l+",
  "\\z",
  "\\dd",
  "\\conninfo",
  "\\lo_list",
  "\\dconfig *timeout*",
  "\\du admin",
  "\\dT uuid",
];

for (const program of [...await installed(["psql"], "psql of the system"), ...packaged()]) {
  Deno.test(`psql of several versions: ${program.split("/").at(-4) ?? program}`, async () => {
    await using server = await startServer();
    await server.exec(
      "create table t (x int, s symbol index, a double[], ts timestamp) timestamp(ts) partition by day",
    );
    await server.exec("create table other (n long)");
    const psql = (input: string, ...args: string[]) => runPsql(program, server.pgPort, input, ...args);
    const commands = [...COMMANDS, ...NAMED, ...MORE];
    const output = await psql(commands.map((command) => `\\echo == ${command.slice(1)}\n${command}\n`).join(""));
    const failed = output.split(/^== /m).filter((text) => /ERROR/.test(text) && !/invalid command/.test(text));
    assert.deepEqual(failed, []);
    assert.match(await psql("\\dt", "-t"), /^public\|other\|table\|admin\npublic\|t\|table\|admin\n$/);
    assert.match(
      await psql("\\d t", "-t"),
      /^x\|integer\|.*\ns\|character varying.*\na\|double precision\[\].*\nts\|timestamp/,
    );
    assert.match(await psql("\\l", "-t"), /^qdb\|admin\|UTF8\|/);
    assert.match(await psql("\\du", "-t"), /^admin\|/);
    assert.match(await psql("\\dconfig statement_timeout", "-t"), /^statement_timeout\|0\n$/);
  });
}
