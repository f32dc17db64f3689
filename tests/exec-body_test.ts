/** POST /exec with the statement in the body. */
import assert from "node:assert/strict";
import { startServer } from "./server.ts";

const FORM = "application/x-www-form-urlencoded";
const JSON_TYPE = "application/json";

Deno.test("POST /exec accepts a statement as a form, and as JSON with parameters", async () => {
  await using server = await startServer({ env: { SVC_HTTP_REQUEST_BODY_SIZE_MAX: "2k" } });
  const post = async (type: string, body: string, query = "") => {
    const reply = await fetch(`${server.http}/exec${query}`, {
      method: "POST",
      headers: { "content-type": type },
      body,
    });
    return { status: reply.status, ...await reply.json() };
  };
  const json = (body: unknown, query = "") => post(JSON_TYPE, JSON.stringify(body), query);
  await server.exec(
    "create table t (ts timestamp, s symbol, i int, l long, d double, b boolean, a double[]) timestamp(ts)",
  );

  assert.deepEqual((await post(FORM, "query=select+1%2B1&nm=true")).dataset, [[2]]);
  assert.deepEqual((await post(`${FORM}; charset=utf-8`, "query=select+'%C3%A9'&nm=true")).dataset, [["é"]]);
  const paged = await json({ query: "select x from long_sequence(9)", limit: "2,3", nm: true });
  assert.deepEqual([paged.dataset, paged.count], [[[2], [3]], 3]);
  assert.deepEqual((await json({ query: "select 7" }, "?query=select+1&nm=true")).dataset, [[7]], "the body counts");

  const row = ["2024-01-01T00:00:00.000001Z", "it's", -5, 9007199254740993n, 1.5, true, [1, 2.5]];
  const text = `{"query": "insert into t values ($1, $2, $3, $4, $5, $6, $7)", "parameters": ${
    JSON.stringify(row, (_key, value) => typeof value === "bigint" ? Number(value) : value).replace(
      "9007199254740992",
      "9007199254740993",
    )
  }}`;
  assert.deepEqual(await post(JSON_TYPE, text), { status: 200, dml: "OK" });
  assert.equal(
    (await json({ query: "insert into t (ts, s, i) values ($1, $2, $3)", parameters: ["2024-01-02", null, null] }))
      .status,
    200,
  );
  const { dataset } = await server.exec("select * from t", { quoteLargeNum: "true" });
  assert.deepEqual(dataset, [
    ["2024-01-01T00:00:00.000001Z", "it's", -5, "9007199254740993", 1.5, true, [1, 2.5]],
    ["2024-01-02T00:00:00.000000Z", null, null, null, null, false, null],
  ]);
  const found = await json({
    query: "select i from t where ts >= $1 and s = $2 and l > $3 and d < $4 and b = $5",
    parameters: ["2024-01-01", "it's", 1, 2, true],
  });
  assert.deepEqual(found.dataset, [[-5]]);
  const own = await json({ query: "select $1 a, $2 b, $3 c, $4 d, $5 e", parameters: [1, 1.5, true, "x", null] });
  assert.deepEqual(own.dataset, [[1, 1.5, true, "x", null]]);
  assert.deepEqual(own.columns.map(({ type }: { type: string }) => type).slice(0, 3), ["LONG", "DOUBLE", "BOOLEAN"]);

  const refused: [
    title: string,
    reply: Promise<{ status: number; error: string; position: number }>,
    status: number,
    error: RegExp,
  ][] = [
    ["no JSON", post(JSON_TYPE, "{"), 400, /^the body is not JSON: /],
    ["JSON of another kind", json([1]), 400, /not a JSON object/],
    ["no query", json({ parameters: [] }), 400, /no text named query/],
    ["parameters that are no array", json({ query: "select 1", parameters: 1 }), 400, /not an array/],
    ["an object", json({ query: "select $1", parameters: [{}] }), 400, /\$1 is an object/],
    ["too few values", json({ query: "select $1, $2", parameters: [1] }), 400, /has 2 parameters: found 1 values/],
    [
      "no values",
      server.exec("select $1").then((reply) => ({ status: 400, ...reply }) as never),
      400,
      /1 parameters: found 0/,
    ],
    [
      "a value of another type",
      json({ query: "select * from t where i = $1", parameters: ["x"] }),
      400,
      /^parameter \$1: /,
    ],
    ["another content type", post("text/plain", "select 1"), 415, /found the content type 'text\/plain'/],
    ["a long body", post(FORM, `query=${"x".repeat(3000)}`), 413, /longer than 2048 bytes/],
    ["an error of the statement", json({ query: "select nope from t" }), 400, /nope/],
  ];
  for (const [title, reply, status, error] of refused) {
    const answer = await reply;
    assert.deepEqual([answer.status, typeof answer.position], [status, "number"], title);
    assert.match(answer.error, error, title);
  }
});
