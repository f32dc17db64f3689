import assert from "node:assert/strict";
import { commonType, createRegistry, findOverload, functionId, FUNCTIONS } from "./mod.ts";

Deno.test("FUNCTIONS: no name and signature occurs twice", () => {
  const seen = new Set<string>();
  for (const entry of FUNCTIONS) {
    const signature = functionId(
      entry.name,
      entry.args.map((arg) => `${arg.type}${arg.variadic ? "…" : ""}${arg.optional ? "?" : ""}`),
    );
    assert.ok(!seen.has(signature), signature);
    seen.add(signature);
  }
});

Deno.test("FUNCTIONS: each entry has one implementation and a summary", () => {
  for (const entry of FUNCTIONS) {
    const ways =
      [entry.emit, entry.batch, entry.aggregate, entry.window, entry.table, entry.served, entry.rewrite].filter(Boolean)
        .length;
    assert.ok(
      ways === 1 || (ways === 2 && entry.rewrite !== undefined && entry.batch !== undefined),
      `${entry.name} has ${ways} ways`,
    );
    assert.match(entry.summary, /[.?]$/, entry.name);
    assert.ok(entry.args.slice(0, -1).every((arg) => !arg.variadic), `${entry.name}: only the last argument repeats`);
  }
});

const found: [name: string, types: string[], id: string, returns: string][] = [
  ["+", ["INT", "LONG"], "+(LONG,LONG)", "LONG"],
  ["+", ["SHORT", "BYTE"], "+(INT,INT)", "INT"],
  ["+", ["FLOAT", "INT"], "+(FLOAT,FLOAT)", "FLOAT"],
  ["+", ["FLOAT", "LONG"], "+(DOUBLE,DOUBLE)", "DOUBLE"],
  ["+", ["CHAR", "INT"], "+(INT,INT)", "INT"],
  ["+", ["DATE", "INT"], "+(TIMESTAMP,LONG)", "TIMESTAMP"],
  ["+", ["INT", "TIMESTAMP"], "+(LONG,TIMESTAMP)", "LONG"],
  ["-", ["DATE", "DATE"], "-(TIMESTAMP,TIMESTAMP)", "LONG"],
  ["=", ["FLOAT", "DOUBLE"], "=(DOUBLE,DOUBLE)", "BOOLEAN"],
  ["=", ["TIMESTAMP", "LONG"], "=(TIMESTAMP,TIMESTAMP)", "BOOLEAN"],
  ["=", ["TIMESTAMP", "TIMESTAMP_NS"], "=(TIMESTAMP_NS,TIMESTAMP_NS)", "BOOLEAN"],
  ["=", ["SYMBOL", "CHAR"], "=(SYMBOL,STRING)", "BOOLEAN"],
  ["=", ["INT", "NULL"], "=(INT,INT)", "BOOLEAN"],
  ["ceil", ["INT"], "ceil(FLOAT)", "FLOAT"],
  ["abs", ["BYTE"], "abs(SHORT)", "SHORT"],
  ["abs", ["FLOAT"], "abs(DOUBLE)", "DOUBLE"],
  ["min", ["SYMBOL"], "min(SYMBOL)", "STRING"],
  ["first", ["SYMBOL"], "first(SYMBOL)", "SYMBOL"],
  ["lag", ["INT"], "lag(LONG)", "LONG"],
  ["coalesce", ["STRING", "VARCHAR", "SYMBOL"], "coalesce(VARCHAR,VARCHAR,VARCHAR)", "VARCHAR"],
  ["arg_max", ["INT", "LONG"], "arg_max(INT,LONG)", "DOUBLE"],
  ["arg_max", ["INT", "INT"], "arg_max(INT,INT)", "LONG"],
  ["arg_min", ["SHORT", "TIMESTAMP"], "arg_min(INT,TIMESTAMP)", "LONG"],
  ["SUM", ["SHORT"], "sum(SHORT)", "LONG"],
];
Deno.test("findOverload() prefers exact types, then the cheapest casts", () => {
  for (const [name, types, id, returns] of found) {
    const overload = findOverload(name, types);
    assert.ok("entry" in overload, `${name}(${types}): ${JSON.stringify(overload)}`);
    assert.deepEqual([overload.id, overload.returns], [id, returns], `${name}(${types})`);
  }
});

Deno.test("findOverload() rewrites a call with a constant unit to the entry of that unit", () => {
  const hour = findOverload("extract", ["STRING", "TIMESTAMP"], ["hour"]);
  assert.ok("entry" in hour);
  assert.deepEqual([hour.id, hour.arguments], ["hour(TIMESTAMP)", [1]]);
  const floor = findOverload("timestamp_floor", ["STRING", "TIMESTAMP_NS"], ["15m"]);
  assert.ok("entry" in floor);
  assert.deepEqual(floor.arguments, [1, { value: 900000000000n, type: "LONG" }, { value: 0n, type: "TIMESTAMP_NS" }]);
});

const refused: [
  name: string,
  types: string[],
  constants: (string | number | undefined)[],
  failure: Record<string, unknown>,
][] = [
  ["+", ["STRING", "INT"], ["abc"], { failure: "value", atStart: true }],
  [">", ["TIMESTAMP", "STRING"], [undefined, "lunch"], { failure: "value", argument: 1 }],
  [">", ["TIMESTAMP", "BOOLEAN"], [], { failure: "types", argument: 1 }],
  [">", ["BOOLEAN", "INT"], [], { failure: "types", argument: undefined }],
  ["sqrt", ["BOOLEAN"], [], { failure: "types", argument: 0 }],
  ["sqrt", [], [], { failure: "count" }],
  ["length", ["INT"], [], { failure: "types", argument: undefined }],
  ["coalesce", ["BOOLEAN", "TIMESTAMP"], [], { failure: "types", argument: 1 }],
  ["greatest", ["CHAR", "CHAR"], ["a", "b"], { failure: "value", argument: 0 }],
  ["dateadd", ["CHAR", "INT", "TIMESTAMP"], ["q", 1], { failure: "value", argument: 0 }],
  ["~", ["STRING", "CHAR"], [undefined, "["], { failure: "value", argument: 1, offset: 1 }],
  ["regexp_replace", ["CHAR", "CHAR", "CHAR"], ["a", "(", "b"], { failure: "value", argument: 1, offset: 2 }],
  ["cast_UUID", ["STRING"], ["not-a-uuid"], { failure: "value", argument: 0 }],
  ["cast_UUID", ["BOOLEAN"], [], { failure: "types", argument: undefined }],
  ["uppercase", ["STRING"], [], { failure: "unknown" }],
];
Deno.test("findOverload() reports why no overload matches, and for which argument", () => {
  for (const [name, types, constants, expected] of refused) {
    const failure = findOverload(name, types, constants) as unknown as Record<string, unknown>;
    for (const [key, value] of Object.entries(expected)) {
      assert.equal(failure[key], value, `${name}(${types}): ${key} of ${JSON.stringify(failure)}`);
    }
  }
});

Deno.test("createRegistry() resolves the ids of findOverload()", () => {
  const registry = createRegistry();
  for (const [name, types] of found) {
    const overload = findOverload(name, types);
    assert.ok("entry" in overload);
    assert.equal(registry.resolve(overload.id).entry, overload.entry, overload.id);
  }
  assert.throws(() => registry.resolve("nope(INT)"));
});

Deno.test("commonType() follows CASE and set operations", () => {
  assert.equal(commonType(["INT", "LONG"], "case"), "LONG");
  assert.equal(commonType(["LONG", "FLOAT"], "union"), "FLOAT");
  assert.equal(commonType(["CHAR", "NULL"], "case"), "CHAR");
  assert.equal(commonType(["STRING", "VARCHAR"], "case"), "VARCHAR");
  assert.equal(commonType(["STRING", "VARCHAR"], "union"), "STRING");
  assert.equal(commonType(["DATE", "TIMESTAMP"], "union"), "TIMESTAMP");
  assert.equal(commonType(["STRING", "BOOLEAN"], "case"), undefined);
  assert.equal(commonType(["UUID", "STRING"], "union"), "STRING");
});
