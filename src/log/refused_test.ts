import assert from "node:assert/strict";
import { SqlError } from "../errors.ts";
import { LimitedLines, refusedLine, shownText } from "./refused.ts";

Deno.test("refused statements: one line with text, user, message and position, without line ends and secrets", () => {
  const statements = [
    { text: "select\r\n\tnothing\x1b[2J", user: "ann\n", error: new SqlError("no such column", 9, "42703") },
    { text: "create user bo with PASSWORD 'it''s me'", user: "ann", error: new SqlError("found 'it''s me'", 7) },
    { text: "x", user: "ann", error: new Error("boom") },
  ];
  assert.deepEqual(statements.map(refusedLine), [
    "err [sql=`select\\r\\n\\tnothing\\u001b[2J`, principal=ann\\n, msg=no such column, pos=9, state=42703]",
    "err [sql=`create user bo with PASSWORD '****'`, principal=ann, msg=found '****', pos=7, state=42601]",
    "err [sql=`x`, principal=ann, msg=boom]",
  ]);
});

Deno.test("LimitedLines: ten per second are written, the others are counted", () => {
  const lines: string[] = [];
  let now = 0;
  const few = new LimitedLines((line) => lines.push(line), "statements were refused", () => now);
  const tell = (count: number) => {
    for (let n = 0; n < count; n++) few.add(() => "err");
  };
  tell(25);
  assert.equal(lines.length, 10);
  now = 1000;
  tell(1);
  assert.deepEqual(lines.slice(10), ["15 more statements were refused in a second", "err"]);
});

Deno.test("shownText() truncates between characters, and does not change short texts", () => {
  assert.equal(shownText("select 'ü 😀'"), "select 'ü 😀'");
  const cut = shownText("x".repeat(999) + "😀" + "y".repeat(70_000));
  assert.equal(cut, "x".repeat(999) + "…");
  const secrets = ["password = 'a'", 'identified by "a"', "SECRET_KEY: 'a'", "token 'a'", "password to 'a'"];
  for (const text of secrets) assert.match(shownText(text), /'\*\*\*\*'$/);
  const bare = shownText("alter user a with password hunter2");
  assert.equal(bare, "alter user a with password '****'");
  assert.equal(shownText("alter user a drop token type REST 'qt1x'"), "alter user a drop token type REST '****'");
  assert.ok(!shownText(`${" ".repeat(990)}password 'hunter2 and more`).includes("hunter"));
  // With two ways to match a space, this would take days.
  assert.ok(shownText(`alter user a with password${" ".repeat(60_000)};`).startsWith("alter user a with password "));
  assert.equal(shownText(`password${" ".repeat(900)}=${" ".repeat(60)}'hunter2'`).slice(-6), "'****'");
});
