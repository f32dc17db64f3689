/** @questdb/nodejs-client against the real server, in both protocol versions that it supports. */
import assert from "node:assert/strict";
import { Sender } from "@questdb/nodejs-client";
import { startServer } from "../server.ts";

Deno.test("clients of the line protocol", { sanitizeOps: false, sanitizeResources: false }, async (test) => {
  await using server = await startServer();
  for (const version of ["1", "2", "auto"]) {
    await test.step(`@questdb/nodejs-client, protocol version ${version}`, async () => {
      const table = `lines_${version}`;
      const sender = await Sender.fromConfig(
        `http::addr=127.0.0.1:${server.httpPort};auto_flush=off;protocol_version=${version};`,
      );
      await sender.table(table).symbol("side", "buy").floatColumn("price", 39269.98).intColumn("size", 5)
        .booleanColumn("hot", true).stringColumn("note", 'a "b"').timestampColumn("seen", 1_700_000_000_000_000n, "us")
        .at(1_700_000_000_000_001n, "us");
      await sender.table(table).symbol("side", "sell").floatColumn("price", 0.1).at(1_700_000_001_000_000n, "us");
      await sender.flush();
      await sender.close();
      const { columns, dataset } = await server.exec(
        `select side, price, size, hot, note, seen, timestamp from ${table}`,
      );
      assert.deepEqual(columns?.map(({ type }) => type), [
        "SYMBOL",
        "DOUBLE",
        "LONG",
        "BOOLEAN",
        "VARCHAR",
        "TIMESTAMP",
        "TIMESTAMP",
      ]);
      assert.deepEqual(dataset, [
        ["buy", 39269.98, 5, true, 'a "b"', "2023-11-14T22:13:20.000000Z", "2023-11-14T22:13:20.000001Z"],
        ["sell", 0.1, null, false, null, null, "2023-11-14T22:13:21.000000Z"],
      ]);
    });
  }
  await test.step("@questdb/nodejs-client: new columns of DECIMAL and arrays", async () => {
    const sender = await Sender.fromConfig(
      `http::addr=127.0.0.1:${server.httpPort};auto_flush=off;protocol_version=3;`,
    );
    await sender.table("lines_wide").decimalColumn("price", 1010n, 2).decimalColumnText("fee", "1.5e-3")
      .arrayColumn("book", [[1.5, 2], [3, -4.25]]).at(1n, "us");
    await sender.table("lines_wide").decimalColumnText("price", "-0.01").arrayColumn("book", null as never).at(
      2n,
      "us",
    );
    await sender.flush();
    await sender.close();
    const { columns, dataset } = await server.exec("select price, fee, book from lines_wide");
    assert.deepEqual(columns?.map(({ type }) => type), ["DECIMAL(38,18)", "DECIMAL(38,18)", "ARRAY"]);
    assert.deepEqual(dataset, [
      ["10.100000000000000000", "0.001500000000000000", [[1.5, 2], [3, -4.25]]],
      ["-0.010000000000000000", null, null],
    ]);
  });
  await test.step("@questdb/nodejs-client over TCP", async () => {
    const sender = await Sender.fromConfig(`tcp::addr=127.0.0.1:${server.linePort};protocol_version=1;`);
    await sender.connect();
    for (let k = 1n; k <= 1000n; k++) {
      await sender.table("lines_tcp").symbol("side", k % 2n ? "buy" : "sell").intColumn("size", Number(k)).at(k, "us");
    }
    await sender.flush();
    await sender.close();
    let rows: unknown;
    for (let attempt = 0; attempt < 200 && rows !== 1000; attempt++) {
      const reply = await server.exec("select count(), sum(size) from lines_tcp");
      rows = reply.dataset?.[0]?.[0];
      if (rows === 1000) assert.deepEqual(reply.dataset, [[1000, 500500]]);
      else await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.equal(rows, 1000);
  });
});
