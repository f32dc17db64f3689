import assert from "node:assert/strict";
import { definitionOf, EMPTY, fileTextOf, readFileText, type Variable, variableFault, withPanel } from "./model.ts";
import { isRange, rangeText, rangeValues } from "./range.ts";
import { fullStatement, VariableError } from "./statement.ts";

const text = (name: string, value: string): Variable => ({ name, type: "text", value });
const DAY = { from: "2026-01-01T00:00", to: "2026-01-02T00:00" };
const full = (statement: string, variables: Variable[] = []) => fullStatement(statement, DAY, variables);

Deno.test("fullStatement() declares the names that the statement uses, as literals", () => {
  assert.equal(
    full("select * from t where ts >= @from and s = @s", [text("s", "it's"), text("other", "x")]),
    "DECLARE @from := '2026-01-01T00:00:00.000Z'::timestamp, @s := 'it''s' select * from t where ts >= @from and s = @s",
  );
  assert.equal(full("select 1"), "select 1");
  assert.equal(
    full("select x from t sample by @interval"),
    "DECLARE @interval := '10m' select x from t sample by @interval",
  );
  assert.equal(full("select '@from', \"@to\" -- @from\n/* @to */"), "select '@from', \"@to\" -- @from\n/* @to */");
  assert.equal(full("select @price", [text("p", "1")]), "select @price");
});

Deno.test("fullStatement() puts its declarations before the statement's own, which take precedence", () => {
  const own = "declare @s := 'own', @n := 3 select @s, @n, @to";
  assert.equal(
    full(own, [text("s", "given")]),
    "DECLARE @to := '2026-01-02T00:00:00.000Z'::timestamp, @s := 'own', @n := 3 select @s, @n, @to",
  );
});

Deno.test("fullStatement() writes lists in the place of their names", () => {
  const list = (value: string, more: Partial<Variable> = {}) =>
    full("select '@s' from t where s in (@s) or r in (@S)", [{ ...text("s", value), isList: true, ...more }]);
  assert.equal(list('["a","it\'s"]'), "select '@s' from t where s in ('a', 'it''s') or r in ('a', 'it''s')");
  const choices = ["x", "y"];
  assert.equal(list("[]", { choices }), "select '@s' from t where s in ('x', 'y') or r in ('x', 'y')");
  assert.equal(list(""), "select '@s' from t where s in (null) or r in (null)");
  assert.equal(list('["1","2.5"]', { type: "number" }), "select '@s' from t where s in (1, 2.5) or r in (1, 2.5)");
  assert.throws(() => list('["1) or (1"]', { type: "number" }), VariableError);
  assert.equal(list('["@from"]'), "select '@s' from t where s in ('@from') or r in ('@from')");
});

Deno.test("fullStatement() inserts numbers unchanged, and refuses other values for a number", () => {
  const number = (value: string) => full("select @n", [{ name: "n", type: "number", value }]);
  assert.equal(number(" -1.5e3 "), "DECLARE @n := -1.5e3 select @n");
  assert.equal(number(""), "DECLARE @n := null select @n");
  for (const bad of ["1; drop table t", "1 or 1", "'1'", "0x1", "1--"]) assert.throws(() => number(bad), VariableError);
  assert.equal(full("select @s", [text("s", "'; drop table t; --")]), "DECLARE @s := '''; drop table t; --' select @s");
});

Deno.test("ranges", () => {
  assert.deepEqual(rangeValues({ last: "15m" }), { from: "dateadd('m', -15, now())", to: "now()", interval: "'5s'" });
  assert.equal(rangeText({ last: "24h" }), "Last 24 hours");
  assert.equal(rangeText(DAY), "2026-01-01 00:00 to 2026-01-02 00:00");
  const cases = [{ last: "15m" }, { all: true }, DAY, { last: "1'm" }, { last: "0m" }, { from: "x", to: "y" }, null];
  assert.deepEqual(cases.map(isRange), [true, true, true, false, false, false, false]);
});

Deno.test("a dashboard is unchanged by export and import; other files are refused with a reason", () => {
  const panel = { title: "p", statement: "select 1", kind: "number", width: 6, height: "low", unit: "plain" } as const;
  const definition = { ...withPanel(EMPTY, panel), variables: [text("s", "x")] };
  assert.deepEqual(readFileText(fileTextOf("mine", definition)), { name: "mine", definition });
  const refused: [string, RegExp][] = [
    ["{", /not JSON/],
    ["null", /no "kind"/],
    ['{"kind":"sundial-dashboard"}', /^version: found undefined, expected 1/],
    [fileTextOf("x", { ...definition, range: { last: "1'm" } }), /^range/],
    [
      fileTextOf("x", { ...definition, variables: [text("from", "")] }),
      /^variables\[0\]: @from is defined by the dashboard/,
    ],
    [fileTextOf("x", { ...definition, panels: [{ ...panel, id: 1, width: 5 }] }), /^panels\[0\]/],
  ];
  for (const [file, message] of refused) assert.match(String(readFileText(file)), message);
  assert.equal(typeof definitionOf(undefined), "string");
  assert.match(variableFault("S", [text("s", "")])!, /already/);
});
