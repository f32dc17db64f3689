/** The console's page about the server. */
import assert from "node:assert/strict";
import { startServer } from "../server.ts";
import { test, textsOf } from "./visit.ts";

test("the server page draws rates, lists running statements and cancels them", async ({ page, server }) => {
  await server.exec("create table t (x long, ts timestamp) timestamp(ts) partition by day");
  await server.exec("insert into t select x, timestamp_sequence('2026-01-01', 1000000) from long_sequence(100)");
  await page.click("text=Server");
  await page.waitForSelector(".live-charts .card[aria-label='Memory'] canvas");
  await page.waitForSelector(".numbers dd:text-matches('GiB|MiB')");
  const ended = server.exec("select count() from long_sequence(3000000000) where rnd_double() < 0");
  await page.waitForSelector(".facts td:has-text('rnd_double()')");
  await page.waitForSelector(".facts td:has-text(' of 3B rows')");
  await page.click("[aria-label^='Cancel statement']");
  assert.match((await ended).error!, /was cancelled by admin/);
  await page.waitForSelector("text=Nothing runs at the moment.");
});

test("the server page shows tables, errors, and settings that wait for a restart", async ({ page, server }) => {
  await server.exec("create table prices (x long, ts timestamp) timestamp(ts) partition by day");
  await server.exec("insert into prices values (1, '2026-01-01'), (2, '2026-01-02')");
  await server.exec("select nothing from prices");
  await page.goto(`${server.http}/#/server/tables`);
  await page.waitForSelector(".facts td:has-text('prices')");
  const [name, state, waits, rows, , partitions] = await textsOf(page, ".facts tbody td");
  assert.deepEqual([name, state, waits, rows, partitions], ["prices", "well", "nothing", "2", "2 by day"]);
  await page.click(".sections >> text=Errors");
  await page.waitForSelector(".facts td:has-text('there is no column nothing')");
  await page.click(".sections >> text=Settings");
  await page.waitForSelector(".facts td:has-text('http.net.bind.to')");
  await page.fill(".facts .search", "query.timeout");
  await page.waitForSelector(".facts tr:has-text('query.timeout'):has-text('default')");
  await Deno.writeTextFile(`${server.root}/conf/server.conf`, "shared.worker.count=7\n", { append: true });
  await page.click("text=Read server.conf again");
  await page.waitForSelector(".warning:has-text('One changed setting waits')");
  await page.fill(".facts .search", "");
  await page.waitForSelector(".facts tr.waits:has-text('shared.worker.count'):has-text('7')");
});

test("a server that goes away is shown and survived, and nothing typed is lost", async ({ page, server }) => {
  await page.click(".cm-content");
  await page.keyboard.press("Control+A");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText("select 'typed before'");
  await page.click("text=Server");
  await page.waitForSelector(".live-charts canvas");
  await server.stop();
  await page.waitForSelector(".away:not([hidden]):has-text('does not answer')");
  assert.ok(await page.isVisible(".live-charts canvas"), "the last readings stay");
  await using _again = await startServer({ root: server.root, httpPort: server.httpPort });
  await page.waitForSelector(".away", { state: "hidden" });
  await page.click("text=Query");
  assert.equal(await page.innerText(".cm-content"), "select 'typed before'");
}, { isAlone: true });
