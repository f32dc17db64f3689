import assert from "node:assert/strict";
import { cursorCommand, mayBeCursorCommand } from "./cursors.ts";

const declares: [text: string, name: string, query: string, holds: boolean][] = [
  ["DECLARE c1 CURSOR FOR\nSELECT 1", "c1", "SELECT 1", false],
  ['declare "A ""b" binary no scroll cursor with hold for select 1', 'A "b', "select 1", true],
  ["DECLARE C CURSOR WITHOUT HOLD FOR select 'cursor with hold for'", "c", "select 'cursor with hold for'", false],
];
for (const [text, name, query, holds] of declares) {
  Deno.test(`cursorCommand() reads ${text}`, () => {
    const queryAt = text.length - query.length;
    assert.deepEqual(cursorCommand(text), { kind: "declare", name, query, queryAt, holds });
    assert.ok(mayBeCursorCommand(text));
  });
}

const fetches: [text: string, kind: string, name: string, rowCount: number | undefined][] = [
  ["FETCH 100 FROM c1", "fetch", "c1", 100],
  ['fetch 100 in "SQL_CUR0x1"', "fetch", "SQL_CUR0x1", 100],
  ["FETCH FORWARD 1 FROM C;", "fetch", "c", 1],
  ["fetch c", "fetch", "c", 1],
  ["fetch next from c", "fetch", "c", 1],
  ["fetch forward from c", "fetch", "c", 1],
  ["fetch forward all from c", "fetch", "c", Infinity],
  ["fetch all c", "fetch", "c", Infinity],
  ["MOVE 0 IN c", "move", "c", 0],
  ["move forward 5 c", "move", "c", 5],
  ["fetch prior from c", "fetch", "c", undefined],
  ["fetch backward 3 from c", "fetch", "c", undefined],
  ["fetch absolute 1 from c", "fetch", "c", undefined],
  ["fetch -1 from c", "fetch", "c", undefined],
];
for (const [text, kind, name, rowCount] of fetches) {
  Deno.test(`cursorCommand() reads ${text}`, () => {
    const nameAt = text.search(/\S+$/);
    assert.deepEqual(cursorCommand(text), { kind, name, nameAt, rowCount });
  });
}

for (const text of ["declare @x := 1 select @x", "fetch where x = 1", "select 1", "fetch", "moves", "close c"]) {
  Deno.test(`cursorCommand() leaves ${text} to the grammar`, () => assert.equal(cursorCommand(text), undefined));
}

Deno.test("cursorCommand() reads very many spaces", () => {
  // With two ways to match a space, this would take minutes.
  assert.equal(cursorCommand(`fetch a${" ".repeat(1_000_000)}x y`), undefined);
});
