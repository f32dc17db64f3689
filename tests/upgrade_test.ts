/**
 * Roots of every format version open; one of a newer version is refused. The roots in `tests/roots/` are never
 * rewritten.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { FORMAT_VERSION } from "../src/storage/format.ts";
import { DEVELOPMENT_FLAGS } from "../scripts/flags.ts";
import { fromFileUrl } from "./paths.ts";
import { startServer } from "./server.ts";

const ROOTS = fromFileUrl("roots");
/** The first format with encoded columns, whose root has a table of them. */
const ENCODES_COLUMNS = 6;
/** The first one with encoded texts. */
const ENCODES_TEXTS = 7;
/** The first one with lists of pages on disk. Those of its root are short. */
const LISTS_PAGES = 8;
/** The first one with versions of partitions on disk. Its root has a detached one. */
const NAMES_PARTITIONS = 9;

function copyOf(version: number): string {
  const root = Deno.makeTempDirSync({ prefix: "sundial-" });
  const copy = (from: string, to: string) => {
    Deno.mkdirSync(to, { recursive: true });
    for (const { name, isDirectory } of Deno.readDirSync(from)) {
      if (isDirectory) copy(join(from, name), join(to, name));
      else Deno.copyFileSync(join(from, name), join(to, name));
    }
  };
  copy(join(ROOTS, String(version)), root);
  return root;
}

Deno.test("there is a root of every format version", () => {
  const versions = [...Deno.readDirSync(ROOTS)].map(({ name }) => Number(name)).sort((a, b) => a - b);
  assert.deepEqual(versions, Array.from({ length: FORMAT_VERSION + 1 }, (_, version) => version));
});

for (let version = 0; version <= FORMAT_VERSION; version++) {
  Deno.test(`a root of format ${version} opens, is written to, and opens again`, async () => {
    const root = copyOf(version);
    {
      await using server = await startServer({ root });
      assert.deepEqual((await server.exec("select * from trades")).dataset, [
        ["2024-01-01T10:00:00.000000Z", "BTC", 1.5, "first"],
        ["2024-01-02T10:00:00.000000Z", "ETH", 2.5, null],
        ["2024-01-02T11:00:00.000000Z", "SOL", 3.5, "in the log"],
      ]);
      assert.deepEqual((await server.exec("select sum(x) from plain")).dataset, [[15]]);
      if (version >= ENCODES_COLUMNS) {
        const { dataset } = await server.exec(
          "select count(), sum(unit), sum(value), count(serial), max(ts) from readings",
        );
        assert.deepEqual(dataset, [[2000, 99_000, 20_010, 1800, "2024-01-01T00:33:19.000000Z"]]);
      }
      if (version >= ENCODES_TEXTS) {
        const { dataset } = await server.exec(
          "select count(), count_distinct(service), count(message), sum(length(message)), count_distinct(id) from logs where service like 'service-%'",
        );
        assert.deepEqual(dataset, [[3000, 10, 2667, 59_678, 3000]]);
      }
      if (version >= LISTS_PAGES) {
        const { dataset } = await server.exec(
          "select count(), sum(x), sum(case when ts in '2024-01-07' then x end) from days",
        );
        assert.deepEqual(dataset, [[40, 780, 6]]);
        await server.exec("insert into days values ('2024-01-03T01:00:00', 40)");
        assert.deepEqual((await server.exec("select sum(x) from days where ts in '2024-01-03'")).dataset, [[42]]);
      }
      if (version >= NAMES_PARTITIONS) {
        const { dataset } = await server.exec(
          "select name, minTimestamp, numRows, detached from table_partitions('trades')",
        );
        assert.deepEqual(dataset, [
          ["2024-01-01", "2024-01-01T10:00:00.000000Z", 1, false],
          ["2024-01-02", "2024-01-02T10:00:00.000000Z", 2, false],
          ["2023-12-31.detached", "2023-12-31T08:00:00.000000Z", 1, true],
        ]);
      }
      await server.exec("insert into trades values ('2024-01-02T12:00:00', 'ADA', 4.5, 'new')");
      assert.equal(await server.stop(), 0);
    }
    await using server = await startServer({ root });
    const { dataset } = await server.exec("select count(), count_distinct(symbol), sum(price) from trades");
    assert.deepEqual(dataset, [[4, 4, 12]]);
    assert.doesNotMatch(server.output(), / [CE] /);
    await server.stop();
    Deno.removeSync(root, { recursive: true });
  });
}

/** Where each kind of file stores the version, and how to fix its checksums. */
const NEWER = FORMAT_VERSION + 1;
const raised: [string, RegExp, (bytes: Uint8Array, path: string) => Uint8Array][] = [
  ["catalogue", /catalog\.\d$/, (bytes) => {
    const payload = new TextDecoder().decode(bytes.subarray(20)).replace(/"format":\d+/, `"format":${NEWER}`);
    const raised = new Uint8Array([...bytes.subarray(0, 20), ...new TextEncoder().encode(payload)]);
    new DataView(raised.buffer).setUint32(16, raised.length - 20, true);
    return slot(raised);
  }],
  ["manifest", /manifest\.\d$/, (bytes) => {
    new DataView(bytes.buffer).setUint32(20, NEWER, true);
    return slot(bytes);
  }],
  ["edit of a manifest", /edits\.\d$/, (bytes) => {
    new DataView(bytes.buffer).setUint32(20, NEWER, true);
    return slot(bytes);
  }],
  ["slot of access control", /access\.\d$/, (bytes) => {
    new DataView(bytes.buffer).setUint32(20, NEWER, true);
    return slot(bytes);
  }],
  ["log", /\.wal$/, (bytes) => {
    new DataView(bytes.buffer).setUint32(24, NEWER, true);
    return headed(bytes);
  }],
  ["data file", /\.seg$/, (bytes) => {
    new DataView(bytes.buffer).setUint32(8, NEWER, true);
    return headed(bytes);
  }],
  ["dictionary", /\.dict$/, (bytes, path) => {
    const before = crc32(bytes);
    new DataView(bytes.buffer).setUint32(8, NEWER, true);
    headed(bytes);
    replaceInManifests(join(path, ".."), `"crc":${before}`, `"crc":${crc32(bytes)}`);
    return bytes;
  }],
];

function slot(bytes: Uint8Array): Uint8Array {
  const view = new DataView(bytes.buffer);
  const size = view.getUint32(16, true);
  view.setUint32(4, crc32(bytes.subarray(20, 20 + size), crc32(bytes.subarray(8, 20))), true);
  return bytes;
}

function headed(bytes: Uint8Array): Uint8Array {
  new DataView(bytes.buffer).setUint32(4, crc32(bytes.subarray(8, 64)), true);
  return bytes;
}

/** A manifest begins with version, size, and a JSON head. */
function replaceInManifests(directory: string, from: string, to: string): void {
  let count = 0;
  for (const { name } of Deno.readDirSync(directory)) {
    if (!name.startsWith("manifest.")) continue;
    const bytes = Deno.readFileSync(join(directory, name));
    const view = new DataView(bytes.buffer);
    const size = view.getUint32(24, true);
    const head = new TextDecoder().decode(bytes.subarray(28, 28 + size));
    const changed = new TextEncoder().encode(head.replace(from, to));
    if (head.includes(from)) count++;
    const grown = new Uint8Array(bytes.length + changed.length - size);
    grown.set(bytes.subarray(0, 28));
    grown.set(changed, 28);
    grown.set(bytes.subarray(28 + size), 28 + changed.length);
    const grownView = new DataView(grown.buffer);
    grownView.setUint32(24, changed.length, true);
    grownView.setUint32(16, view.getUint32(16, true) + changed.length - size, true);
    Deno.writeFileSync(join(directory, name), slot(grown));
  }
  assert.ok(count > 0);
}

async function failedStart(root: string, env: Record<string, string> = {}): Promise<string> {
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...DEVELOPMENT_FLAGS, fromFileUrl("../main.ts"), "start", "-d", root],
    env: {
      NO_COLOR: "1",
      SVC_HTTP_NET_BIND_TO: "127.0.0.1:0",
      SVC_PG_NET_BIND_TO: "127.0.0.1:0",
      SVC_HTTP_MIN_BIND_TO: "127.0.0.1:0",
      SVC_LINE_TCP_NET_BIND_TO: "127.0.0.1:0",
      ...env,
    },
  }).output();
  assert.equal(code, 1);
  const [line, ...more] = new TextDecoder().decode(stderr).split("\n");
  assert.deepEqual(more, [""]);
  return line;
}

function filesBelow(directory: string): string[] {
  return [...Deno.readDirSync(directory)].flatMap(({ name, isDirectory }) =>
    isDirectory ? filesBelow(join(directory, name)) : [join(directory, name)]
  );
}

Deno.test("every file of a database records its format", () => {
  const database = join(ROOTS, String(FORMAT_VERSION), "db");
  assert.deepEqual(filesBelow(database).filter((path) => !raised.some(([, names]) => names.test(path))), []);
});

/** The start opens the tables of a root whose catalogue does not record their LSNs. */
const OPENS_TABLES = 1;

for (const [title, names, raise] of raised) {
  Deno.test(`a ${title} of a newer version stops the start with one line`, async () => {
    const isOfTable = ["manifest", "data file", "dictionary"].includes(title);
    const root = copyOf(isOfTable ? OPENS_TABLES : FORMAT_VERSION);
    const paths = filesBelow(join(root, "db")).filter((path) => names.test(path));
    assert.ok(paths.length > 0);
    for (const path of paths) Deno.writeFileSync(path, raise(Deno.readFileSync(path), path));
    const line = await failedStart(root);
    assert.ok(
      paths.some((path) => line.startsWith(`sundial: ${path} was written by a newer version (format ${NEWER};`)),
      line,
    );
    Deno.removeSync(root, { recursive: true });
  });
}

Deno.test("undelivered alerts of a newer version stop the start with one line", async () => {
  const root = copyOf(FORMAT_VERSION);
  const path = join(root, "log", "alert-alerts.queue");
  Deno.mkdirSync(join(root, "log"));
  Deno.writeTextFileSync(path, `{"format":99}\n`);
  const alerts = { SVC_LOG_WRITERS: "alert", SVC_LOG_W_ALERT_CLASS: "io.service.log.LogAlertSocketWriter" };
  const line = await failedStart(root, { ...alerts, SVC_LOG_W_ALERT_LEVEL: "CRITICAL" });
  assert.ok(line.startsWith(`sundial: ${path} was written by a newer version (format 99;`), line);
  Deno.removeSync(root, { recursive: true });
});
