import assert from "node:assert/strict";
import { zstdDecompressSync } from "node:zlib";
import { DiskFullError, LineError, SqlError, SQLSTATE } from "../../errors.ts";
import { FakeDatabase, type FakeStatement } from "../testing/fake-database.ts";
import { configOf } from "../../command/testing.ts";
import { type HttpOptions, startHttp } from "./mod.ts";
import { LARGE_BYTES_MIN, LargeStatements } from "../large-statements.ts";
import { FAKE_CONSOLE } from "../testing/fake-console.ts";
import { execWindow, expWindow, Parameters } from "./parameters.ts";

const ALL = Number.MAX_SAFE_INTEGER;

Deno.test("execWindow() and expWindow() read a limit", () => {
  const cases: [limit: string, exec: [number, number] | undefined, exp: [number, number] | undefined][] = [
    ["3", [0, 3], [0, 3]],
    ["0", [0, 1], [0, 0]],
    ["-5", [0, 1], [0, 0]],
    ["2,4", [1, 3], [2, 2]],
    ["3,6", [2, 4], [3, 3]],
    ["0,2", [0, 2], [0, 2]],
    ["-1,2", [0, 2], [0, 2]],
    ["4,2", [3, 1], [4, 0]],
    ["1,1", [0, 1], [1, 0]],
    ["3,", [2, ALL - 2], [3, ALL - 3]],
    ["2,x", [1, ALL - 1], [2, ALL - 2]],
    [",2", undefined, undefined],
    ["x", undefined, undefined],
    ["2,4,5", [1, ALL - 1], [2, ALL - 2]],
    ["2L", [0, 2], [0, 2]],
    ["1_0,1_2l", [9, 3], [10, 2]],
    ["1__0", undefined, undefined],
    ["99999999999999999999", undefined, undefined],
  ];
  for (const [limit, exec, exp] of cases) {
    assert.deepEqual(execWindow(limit), exec && { first: exec[0], count: exec[1] }, limit);
    assert.deepEqual(expWindow(limit), exp && { first: exp[0], count: exp[1] }, limit);
  }
});

Deno.test("Parameters decode, and the last of equal names is used", () => {
  const parameters = new Parameters("a=1+2%2B&b=%ff&nm=TRUE&a=%C3%A9&c");
  assert.equal(parameters.get("a"), "é");
  assert.equal(parameters.get("c"), "");
  assert.equal(parameters.get("A"), undefined);
  assert.ok(parameters.isBroken("b") && parameters.isTrue("nm"));
});

const STATEMENTS: Record<string, FakeStatement> = {
  one: {},
  six: { rowCount: 6 },
  page: { rowCount: 1000 },
  many: { rowCount: 100_000 },
  "odd-names": { columns: ["a\nb", "c\\d", 'e"f'].map((name) => ({ name, type: "LONG" })) },
  broken: { rowCount: 5000, failAt: 3000 },
  "broken at once": { rowCount: 5000, failAt: 0 },
  bad: { prepareError: new SqlError("no such thing", 3) },
  told: { notices: ["größer", 'a "b"'] },
  "made and told": { done: { category: "ddl", tag: "CREATE TABLE", rows: 0 }, notices: ["left out"] },
  make: { done: { category: "ddl", tag: "CREATE TABLE", rows: 0 } },
  insert: { done: { category: "dml", tag: "INSERT 0 3", rows: 3 } },
  update: { done: { category: "dml", tag: "UPDATE 2", rows: 2 } },
  "": { done: { category: "empty", tag: "", rows: 0 } },
};

async function withServer(
  test: (url: string, database: FakeDatabase) => Promise<void>,
  settings: Record<string, string> = {},
  more: Record<string, FakeStatement> = {},
  options: Partial<HttpOptions> = {},
): Promise<void> {
  const database = new FakeDatabase((text) =>
    ({ ...STATEMENTS, ...more })[text] ?? { prepareError: new SqlError(`? ${text}`, 0) }
  );
  const server = startHttp({
    hostname: "127.0.0.1",
    port: 0,
    database,
    config: configOf(settings),
    log: { info() {}, error() {} },
    console: FAKE_CONSOLE,
    ...options,
  });
  try {
    await test(`http://127.0.0.1:${server.port}`, database);
  } finally {
    await server.close();
  }
}

async function body(url: string, init?: RequestInit): Promise<[number, string]> {
  const reply = await fetch(url, init);
  return [reply.status, await reply.text()];
}

Deno.test("/exec answers rows, statements and errors", () =>
  withServer(async (url) => {
    const cases: [query: string, status: number, body: string][] = [
      [
        "query=one",
        200,
        '{"query":"one","columns":[{"name":"x","type":"LONG"}],"timestamp":-1,"dataset":[[1]],"count":1}',
      ],
      [
        "query=one%3B",
        200,
        '{"query":"one;","columns":[{"name":"x","type":"LONG"}],"timestamp":-1,"dataset":[[1]],"count":1}',
      ],
      ["query=six&nm=true&limit=2,4", 200, '{"dataset":[[2],[3],[4]],"count":4}'],
      ["query=six&nm=true&limit=10,20", 200, '{"dataset":[],"count":0}'],
      ["query=six&nm=true&limit=2&count=true&quoteLargeNum=true", 200, '{"dataset":[["1"],["2"]],"count":6}'],
      ["query=one&nm=true&explain=true", 200, '{"dataset":[[1]],"count":1,"explain":{"jitCompiled":true}}'],
      ["query=six&nm=true&cols=x,X,&limit=1", 200, '{"dataset":[[1,1]],"count":1}'],
      ["query=six&nm=true&cols=%22x%22&limit=1&src=CON", 200, '{"dataset":[["1"]],"count":1}'],
      ["query=one&cols=x,,x", 400, '{"query":"one","error":"cols has an empty name"}'],
      ["query=one&cols=,", 400, '{"query":"one","error":"cols has an empty name"}'],
      ["query=one&cols=%22a,b%22", 400, '{"query":"one","error":"column \'a,b\' is not in the result"}'],
      ["query=one&cols=y", 400, '{"query":"one","error":"column \'y\' is not in the result"}'],
      ["query=told&nm=true", 200, '{"dataset":[[1]],"count":1,"notices":["größer","a \\"b\\""]}'],
      ["query=made+and+told", 200, '{"ddl":"OK","notices":["left out"]}'],
      ["query=make", 200, '{"ddl":"OK"}'],
      ["query=insert", 200, '{"dml":"OK"}'],
      ["query=update", 200, '{"dml":"OK","updated":2}'],
      ["query=bad", 400, '{"query":"bad","error":"no such thing","position":3}'],
      ["query=broken+at+once", 400, '{"query":"broken at once","error":"a row is broken","position":7}'],
      ["query=", 200, '{"error":"empty query","query":"","position":"0"}'],
    ];
    for (const [query, status, text] of cases) {
      assert.deepEqual(await body(`${url}/exec?${query}`), [status, text], query);
    }
    const [, timed] = await body(`${url}/exec?query=one&timings=true`);
    assert.deepEqual(Object.keys(JSON.parse(timed).timings), ["authentication", "compiler", "execute", "count"]);
  }));

Deno.test("JSON replies announce how long connections are kept, as the settings say", () =>
  withServer(async (url) => {
    for (const path of ["exec?query=select+1", "exec?query=nonsense", "exec?query=", "warnings"]) {
      const reply = await fetch(`${url}/${path}`);
      await reply.body?.cancel();
      assert.equal(reply.headers.get("keep-alive"), "timeout=9, max=77", path);
    }
  }, { "http.keep-alive.timeout": "9", "http.keep-alive.max": "77" }));

Deno.test("/exec: a large statement in a body waits for its room, and is refused if that takes too long", async () => {
  const largeStatements = new LargeStatements(1_000_000, 100), text = "x".repeat(LARGE_BYTES_MIN);
  await withServer(
    async (url) => {
      const form = { "content-type": "application/x-www-form-urlencoded" };
      const post = (body: BodyInit) => fetch(`${url}/exec`, { method: "POST", headers: form, body });
      const large = () => post(`query=one&y=${text}`);
      // Without a length, the most that a body may have is counted.
      const chunked = () => post(new Blob([`query=one&y=${text}`]).stream());
      const release = await largeStatements.take(900_000);
      for (const request of [large, chunked]) {
        const refused = await request();
        assert.equal(refused.status, 503);
        assert.match((await refused.json()).error, /^large statements of other clients fill query.text.memory.size/);
      }
      assert.equal((await (await post("query=one")).json()).count, 1);
      setTimeout(release, 20);
      for (const request of [large, chunked]) assert.equal((await (await request()).json()).count, 1);
      (await largeStatements.take(1_000_000))();
    },
    {},
    {},
    { largeStatements },
  );
});

Deno.test("/exec: a client that does not send the rest of its large statement is refused while others wait", async () => {
  let nowMs = 0;
  const largeStatements = new LargeStatements(1_000_000, 5_000, 2, () => nowMs += 1_000);
  const body = `query=one&y=${"x".repeat(800_000)}`, headers = { "content-type": "application/x-www-form-urlencoded" };
  await withServer(
    async (url) => {
      using silent = await Deno.connect({ port: Number(new URL(url).port) });
      const head = `POST /exec HTTP/1.1\r\nHost: x\r\nContent-Type: ${
        headers["content-type"]
      }\r\nContent-Length: ${body.length}\r\n\r\n`;
      await new Blob([head, body.slice(0, 400_000)]).stream().pipeTo(silent.writable, { preventClose: true });
      await new Promise((resolve) => setTimeout(resolve, 50));
      const waiting = await fetch(`${url}/exec`, { method: "POST", headers, body });
      assert.equal((await waiting.json()).count, 1);
      const refusal = new Uint8Array(4_096), size = await silent.read(refusal);
      assert.match(
        new TextDecoder().decode(refusal.subarray(0, size!)),
        /^HTTP\/1.1 408 [^]*took too long: large statements of other clients wait for query.text.memory.size/,
      );
    },
    {},
    {},
    { largeStatements },
  );
});

Deno.test("/exec streams many chunks, and ends the document when a row fails", () =>
  withServer(async (url) => {
    const [, many] = await body(`${url}/exec?query=many`);
    const document = JSON.parse(many);
    assert.equal(document.dataset.length, 100_000);
    assert.deepEqual(document.dataset[99_999], [100_000]);
    const [status, broken] = await body(`${url}/exec?query=broken`);
    assert.equal(status, 200);
    assert.ok(broken.endsWith('],"count":3000,"error":"a row is broken", "errorPos":7}'), broken.slice(-80));
    assert.equal(JSON.parse(broken).dataset.length, 3000);
  }));

Deno.test("replies above 4 KiB are compressed for clients that accept gzip or zstd", () =>
  withServer(async (url) => {
    const coding = async (query: string, offer: string) => {
      // A raw connection, because fetch() decompresses answers without telling.
      const connection = await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(url).port) });
      await connection.write(
        new TextEncoder().encode(
          `GET /exec?query=${query} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: ${offer}\r\nConnection: close\r\n\r\n`,
        ),
      );
      const reply = await new Response(connection.readable).bytes();
      return /\r\ncontent-encoding: (\w+)\r\n/i.exec(new TextDecoder("latin1").decode(reply))?.[1];
    };
    const cases: [query: string, offer: string, coding: string | undefined][] = [
      ["six", "gzip", undefined],
      ["page", "br, GZIP", "gzip"],
      ["page", "gzip, zstd", "zstd"],
      ["page", "gzip;q=0.5, zstd;q=0.4", "gzip"],
      ["page", "deflate", undefined],
      ["page", "gzip;q=0", undefined],
      ["bad", "gzip", undefined],
      ["many", "zstd", "zstd"],
      ["many", "gzip;q=0.5", "gzip"],
    ];
    for (const [query, offer, expected] of cases) {
      assert.equal(await coding(query, offer), expected, `${query} ${offer}`);
    }
    for (const query of ["page", "many"]) {
      for (const offer of ["gzip", "zstd"]) {
        const reply = await (await fetch(`${url}/exec?query=${query}`, { headers: { "accept-encoding": offer } }))
          .bytes();
        const text = new TextDecoder().decode(offer === "zstd" ? zstdDecompressSync(reply) : reply);
        assert.equal(JSON.parse(text).dataset.length, STATEMENTS[query].rowCount);
      }
    }
  }, { "http.allow.deflate.before.send": "true" }));

Deno.test("/exp answers CSV", () =>
  withServer(async (url) => {
    assert.deepEqual(await body(`${url}/exp?query=six&limit=3,6`), [200, '"x"\r\n4\r\n5\r\n6\r\n']);
    assert.deepEqual(await body(`${url}/exp?query=six&nm=true&limit=1`), [200, "1\r\n"]);
    assert.deepEqual(await body(`${url}/exp?query=six&limit=7,9`), [200, '"x"\r\n']);
    assert.equal((await body(`${url}/exp?query=make`))[0], 400);
    assert.deepEqual(await body(`${url}/exp`), [400, '{"query":"","error":"no query text","position":0}']);
    const told = await fetch(`${url}/exp?query=told`);
    assert.equal(told.headers.get("sundial-notices"), '["gr\\u00f6\\u00dfer","a \\"b\\""]');
    await told.body?.cancel();
    const reply = await fetch(`${url}/exp?query=one&filename=a%22b`);
    assert.equal(reply.headers.get("content-disposition"), 'attachment; filename="ab.csv"');
    await reply.body?.cancel();
    const unicode = await fetch(`${url}/exp?query=one&filename=Z%C3%BCrich+(1)`);
    const names = `filename="Zrich (1).csv"; filename*=UTF-8''Z%C3%BCrich%20%281%29.csv`;
    assert.equal(unicode.headers.get("content-disposition"), `attachment; ${names}`);
    await unicode.body?.cancel();
    await assert.rejects(body(`${url}/exp?query=broken`));
  }));

Deno.test("/exp compresses Parquet files as the setting says, unless the request does", () =>
  withServer(async (url, database) => {
    for (const query of ["", "&compression_codec=zstd"]) {
      await (await fetch(`${url}/exp?query=one&fmt=parquet${query}`)).body?.cancel();
    }
    const codecs = database.executed.map(({ options: { encoding } }) => encoding.name === "parquet" && encoding.codec);
    assert.deepEqual(codecs, ["SNAPPY", "ZSTD"]);
  }, { "cairo.parquet.export.compression.codec": "snappy" }));

Deno.test("/exp refuses compression levels that the codec does not have", () =>
  withServer(async (url) => {
    const status = async (codec: string, level: string) => {
      const query = `query=one&fmt=parquet&compression_codec=${codec}&compression_level=${level}`;
      const reply = await fetch(`${url}/exp?${query}`);
      await reply.body?.cancel();
      return reply.status;
    };
    const refused = [["gzip", "10"], ["brotli", "12"], ["zstd", "0"], ["zstd", "23"], ["zstd", "-1"], ["lz4_raw", "x"]];
    for (const [codec, level] of refused) assert.equal(await status(codec!, level!), 400, `${codec} ${level}`);
    const taken = [["gzip", "0"], ["gzip", "9"], ["brotli", "11"], ["zstd", "22"], ["snappy", "99"], ["zstd", ""]];
    for (const [codec, level] of taken) assert.equal(await status(codec!, level!), 200, `${codec} ${level}`);
  }));

Deno.test("/exp escapes control characters and backslashes in names as in texts, and takes an empty fmt for none", () =>
  withServer(async (url) => {
    const [, text] = await body(`${url}/exp?query=odd-names&fmt=`);
    assert.equal(text.split("\r\n")[0], String.raw`"a\nb","c\\d","e""f"`);
  }));

Deno.test("/write passes lines on and reports a bad line", () =>
  withServer(async (url, database) => {
    const post = (init: RequestInit, query = "") => body(`${url}/write${query}`, { method: "POST", ...init });
    assert.deepEqual(await post({ body: "t v=1i" }), [204, ""]);
    const gzip = await new Response(new Blob(["t v=2i"]).stream().pipeThrough(new CompressionStream("gzip"))).bytes();
    assert.deepEqual(await post({ body: gzip, headers: { "content-encoding": "gzip" } }), [204, ""]);
    assert.deepEqual(database.lines.map((bytes) => new TextDecoder().decode(bytes)), ["t v=1i", "t v=2i"]);
    assert.equal((await post({ body: "x", headers: { "content-encoding": "gzip" } }))[0], 415);
    const refused = await fetch(`${url}/write?precision=d`, { method: "POST", body: "t v=1i" });
    assert.deepEqual([refused.status, refused.headers.get("content-type")], [400, "application/json"]);
    await refused.body?.cancel();
    const chunked = new ReadableStream({
      start(controller) {
        for (const part of ["t v=", "3i"]) controller.enqueue(new TextEncoder().encode(part));
        controller.close();
      },
    });
    assert.deepEqual(await post({ body: chunked }), [204, ""]);
    assert.equal(new TextDecoder().decode(database.lines.at(-1)), "t v=3i");
    const form = new FormData();
    form.append("data", new Blob(["t v=4i\nt v=5i"]), "lines.txt");
    form.append("more", "t v=6i");
    assert.deepEqual(await post({ body: form }), [204, ""]);
    assert.equal(new TextDecoder().decode(database.lines.at(-1)), "t v=4i\nt v=5i\nt v=6i\n");
    const cut = await post({ body: "--b\r\n", headers: { "content-type": "multipart/form-data; boundary=b" } });
    assert.deepEqual([cut[0], JSON.parse(cut[1]).code], [400, "invalid"]);
    assert.equal((await post({ body: "t v=1i".repeat(1000) }))[0], 413);
    database.writeFailure = new LineError(2, "odd");
    const [status, text] = await post({ body: "t v=1i" });
    const reply = JSON.parse(text);
    assert.deepEqual([status, Object.keys(reply), reply.code, reply.line], [
      400,
      ["code", "message", "line", "errorId"],
      "invalid",
      2,
    ]);
    // Clients retry after 503 and 507.
    for (
      const [failure, expected] of [
        [new SqlError("the shared memory is full", 0, SQLSTATE.outOfMemory), 503],
        [new LineError(1, "rows of other requests fill line.memory.size", "too busy"), 503],
        [new DiskFullError("db/log"), 507],
      ] as const
    ) {
      database.writeFailure = failure;
      const [status, text] = await post({ body: "t v=1i" });
      assert.equal(status, expected);
      assert.ok(JSON.parse(text).message.endsWith(failure.message));
    }
    assert.deepEqual(await body(`${url}/write`), [405, "Method GET not supported\r\n"]);
  }, { "line.http.max.recv.buffer.size": "1k" }));

Deno.test("/api/v1/sql/validate compiles and does not run", () =>
  withServer(async (url, database) => {
    const validate = (query: string) => body(`${url}/api/v1/sql/validate?query=${query}`);
    assert.deepEqual(await validate("one"), [
      200,
      '{"query":"one","columns":[{"name":"x","type":"LONG"}],"timestamp":-1,"isRead":true}',
    ]);
    assert.deepEqual(await validate("make"), [200, '{"queryType":"DDL"}']);
    assert.deepEqual(await validate("insert"), [200, '{"queryType":"DML"}']);
    assert.deepEqual(await validate("bad"), [400, '{"query":"bad","error":"no such thing","position":3}']);
    assert.deepEqual(await validate(""), [400, '{"query":"","error":"a statement is expected","position":0}']);
    assert.deepEqual(database.executed, []);
  }));

Deno.test("requests are counted by route", async () => {
  const server = startHttp({
    hostname: "127.0.0.1",
    port: 0,
    database: new FakeDatabase(() => ({})),
    config: configOf(),
    log: { info() {}, error() {} },
    console: FAKE_CONSOLE,
  });
  for (const path of ["ping", "chk?j=t", "chk", "nosuch"]) {
    await (await fetch(`http://127.0.0.1:${server.port}/${path}`)).body?.cancel();
  }
  const counted = Object.entries(server.requests()).filter(([, count]) => count > 0);
  await server.close();
  assert.deepEqual(Object.fromEntries(counted), { ping: 1, chk: 2 });
});

Deno.test("other paths", () =>
  withServer(async (url) => {
    assert.deepEqual(await body(`${url}/nope`), [404, "Not Found\r\n"]);
    assert.deepEqual(await body(`${url}/exec/`), [404, "Not Found\r\n"]);
    assert.deepEqual(await body(`${url}/nope`, { method: "HEAD" }), [404, ""]);
    const head = await fetch(`${url}/settings`, { method: "HEAD" });
    assert.ok(head.status === 200 && Number(head.headers.get("content-length")) > 100);
    assert.equal((await body(`${url}/exec?query=one`, { method: "HEAD" }))[0], 405);
    assert.deepEqual(await body(`${url}/nope`, { method: "DELETE" }), [405, "Method DELETE not supported\r\n"]);
    for (const word of ["json", "JSON"]) {
      assert.deepEqual(await body(`${url}/chk?j=t&f=${word}`), [200, '{"status":"Does not exist"}']);
    }
    assert.deepEqual(await body(`${url}/warnings`), [200, "[]"]);
    const { config } = await (await fetch(`${url}/settings`)).json();
    assert.deepEqual([config["accepting.writes"], config["ilp.proto.transports"]], [["http", "tcp", "pgwire"], [
      "http",
      "tcp",
    ]]);
    assert.equal((await fetch(`${url}/ping`)).headers.get("x-influxdb-version"), "v2.7.4");
    assert.match((await body(`${url}/`))[1], /<title>Sundial/);
  }));

Deno.test("credentials and a read-only server", () =>
  withServer(
    async (url) => {
      const basic = (text: string) => ({ headers: { authorization: `Basic ${btoa(text)}` } });
      assert.deepEqual(await body(`${url}/exec?query=one`), [401, "Unauthorized\r\n"]);
      assert.equal((await body(`${url}/exec?query=one`, basic("bob:wrong")))[0], 401);
      assert.equal((await body(`${url}/exec?query=one`, basic("bob:secret")))[0], 200);
      const opened = await fetch(`${url}/exec?query=one&session=true`, basic("bob:secret"));
      await opened.body?.cancel();
      const cookie = opened.headers.get("set-cookie")!.split(";")[0];
      const again = await fetch(`${url}/exec?query=one`, { headers: { cookie } });
      await again.body?.cancel();
      assert.ok(again.status === 200 && again.headers.has("set-cookie"));
      assert.equal((await body(`${url}/exec?query=one`, { headers: { cookie: `${cookie}x` } }))[0], 401);
      const ended = await fetch(`${url}/exec?query=one&session=false`, { headers: { cookie } });
      await ended.body?.cancel();
      assert.match(ended.headers.get("set-cookie")!, /^sundial_session=; .*Max-Age=0$/);
      assert.equal((await body(`${url}/exec?query=one`, { headers: { cookie } }))[0], 401);
      assert.equal((await body(`${url}/ping`))[0], 204);
      assert.equal((await body(`${url}/write`, { method: "POST", body: "t v=1i", ...basic("bob:secret") }))[0], 421);
    },
    { "http.user": "bob", "http.password": "secret", "http.security.readonly": "true" },
  ));

Deno.test("wrong passwords delay that user, too many waiting log-ins are refused, and sessions are not delayed", () =>
  withServer(
    async (url) => {
      const basic = (text: string) => ({ headers: { authorization: `Basic ${btoa(text)}` } });
      const opened = await fetch(`${url}/exec?query=one&session=true`, basic("bob:secret"));
      await opened.body?.cancel();
      const cookie = opened.headers.get("set-cookie")!.split(";")[0];
      for (let count = 0; count < 5; count++) {
        assert.equal((await body(`${url}/exec?query=one`, basic(`bob:guess ${count}`)))[0], 401);
      }
      const ended: string[] = [];
      const waiting = Array.from({ length: 12 }, async () => {
        ended.push(String((await body(`${url}/exec?query=one`, basic("bob:secret")))[0]));
      });
      assert.equal((await body(`${url}/exec?query=one`, { headers: { cookie } }))[0], 200);
      ended.push("session");
      await Promise.all(waiting);
      assert.deepEqual(ended.toSorted(), [...Array(8).fill("200"), ...Array(4).fill("429"), "session"]);
      assert.deepEqual(new Set(ended.slice(-8)), new Set(["200"]));
    },
    { "http.user": "bob", "http.password": "secret" },
  ));

for (const path of ["exec", "exp"]) {
  Deno.test(`/${path} requests chunks at the reader's pace and stops when the reader leaves`, async () => {
    let asked = 0;
    await withServer(
      async (url, database) => {
        const reply = await fetch(`${url}/${path}?query=endless`);
        const reader = reply.body!.getReader();
        await reader.read();
        await new Promise((resolve) => setTimeout(resolve, 300));
        const before = asked;
        await new Promise((resolve) => setTimeout(resolve, 200));
        assert.equal(asked, before, "a reader that waits holds the producer");
        assert.ok(before < 2000, `${before} chunks were made ahead of the reader`);
        await reader.cancel();
        for (let wait = 0; wait < 50 && database.chunksReturned === 0; wait++) {
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        assert.equal(database.chunksReturned, 1, "the query was given up");
      },
      {},
      { endless: { rowCount: 1e12, onChunk: () => void asked++ } },
    );
  });
}

Deno.test("requests of a kind in flight are limited", async () => {
  const blocked = Promise.withResolvers<void>();
  await withServer(
    async (url) => {
      const waiting = body(`${url}/exec?query=slow`);
      await new Promise((resolve) => setTimeout(resolve, 50));
      const refused = await fetch(`${url}/exec?query=one`);
      assert.equal(refused.headers.get("retry-after"), "1");
      assert.deepEqual([refused.status, await refused.text()], [
        429,
        "too many requests: 1 are in flight, the maximum of http.json.query.connection.limit\r\n",
      ]);
      assert.equal((await body(`${url}/exp?query=one`))[0], 200);
      blocked.resolve();
      assert.equal((await waiting)[0], 200);
      assert.equal((await body(`${url}/exec?query=one`))[0], 200);
    },
    { "http.json.query.connection.limit": "1" },
    { slow: { onChunk: () => blocked.promise } },
  );
});

Deno.test("every answer forbids scripts, and the page allows only its own", () =>
  withServer(async (url) => {
    const paths = ["/exec?query=one", "/exec?query=bad", "/exp?query=one", "/ping", "/settings", "/chk?j=t", "/nope"];
    for (const path of paths) {
      const { headers, body } = await fetch(`${url}${path}`);
      await body?.cancel();
      assert.equal(headers.get("x-content-type-options"), "nosniff", path);
      assert.equal(headers.get("content-security-policy"), "default-src 'none'; frame-ancestors 'none'", path);
    }
    const { hostname, port } = new URL(url);
    using connection = await Deno.connect({ hostname, port: Number(port) });
    await connection.write(new TextEncoder().encode("GET / HTTP/1.1\r\nno colon\r\n\r\n"));
    const refused = await new Response(connection.readable).text();
    assert.match(refused, /^HTTP\/1\.1 400 [^]*x-content-type-options: nosniff\r\n/i);
    const { headers, body } = await fetch(`${url}/index.html`);
    await body?.cancel();
    assert.match(headers.get("content-security-policy")!, /script-src 'self' 'nonce-[^']+'; .*frame-ancestors 'none'/);
  }));

Deno.test("the console: a nonce for each page, and files that browsers may cache", () =>
  withServer(async (url) => {
    const nonces = new Set<string>();
    for (const path of ["/", "/index.html"]) {
      const reply = await fetch(url + path);
      const nonce = /nonce="([^"]+)"/.exec(await reply.text())![1];
      assert.ok(reply.headers.get("content-security-policy")!.includes(`script-src 'self' 'nonce-${nonce}'`));
      nonces.add(nonce);
    }
    assert.equal(nonces.size, 2);
    for (const [accepted, coding] of [["gzip, br", "gzip"], ["identity", null], ["gzip;q=0", null]] as const) {
      const reply = await fetch(`${url}/assets/main-1.js`, { headers: { "accept-encoding": accepted } });
      assert.equal(reply.status, 200);
      assert.match(await reply.text(), /^console\.log\(1\);\n/);
      assert.equal(reply.headers.get("vary")!.includes("Accept-Encoding"), true);
      assert.match(reply.headers.get("cache-control")!, /immutable/);
      assert.equal(reply.headers.get("content-type"), "text/javascript; charset=utf-8");
      if (coding === null) assert.equal(reply.headers.get("content-length"), "1600");
    }
    const missing = await fetch(`${url}/assets/main-2.js`);
    await missing.body?.cancel();
    assert.equal(missing.status, 404);
  }));

Deno.test("pages of other sites cannot change data, and preflights of listed origins are answered", () =>
  withServer(
    async (url, database) => {
      const foreign = { origin: "https://evil.example.org" };
      for (const query of ["make", "insert", "update"]) {
        const [status, text] = await body(`${url}/exec?query=${query}`, { headers: foreign });
        assert.deepEqual([status, JSON.parse(text).query], [403, query]);
      }
      assert.equal((await body(`${url}/exec?query=one`, { headers: foreign }))[0], 200);
      assert.equal((await body(`${url}/write`, { method: "POST", body: "t v=1i", headers: foreign }))[0], 403);
      assert.deepEqual([database.executed.length, database.lines.length], [1, 0]);
      const listed = { origin: "https://app.example.org" };
      assert.equal((await body(`${url}/exec?query=make`, { headers: listed }))[0], 200);
      assert.equal((await body(`${url}/write`, { method: "POST", body: "t v=1i", headers: listed }))[0], 204);
      const preflight = { ...listed, "access-control-request-method": "POST" };
      const reply = await fetch(`${url}/write`, { method: "OPTIONS", headers: preflight });
      assert.deepEqual(
        [reply.status, reply.headers.get("access-control-allow-origin")],
        [204, "https://app.example.org"],
      );
      const others = { ...foreign, "access-control-request-method": "POST" };
      assert.equal((await body(`${url}/write`, { method: "OPTIONS", headers: others }))[0], 405);
    },
    { "http.cors.origins": "https://app.example.org" },
  ));
