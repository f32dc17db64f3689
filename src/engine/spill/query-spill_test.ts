/** Blocks on disk: full disks, damage, the space of all queries, and what is removed. */
import assert from "node:assert/strict";
import { CorruptFileError } from "../../errors.ts";
import { type Faults, FaultyFiles } from "../../storage/faulty-files.ts";
import { createHeap, SHARED_WORD } from "../../storage/heap.ts";
import { QuerySpill, removeSpilled } from "./mod.ts";

const ROOT = "/tmp/spill";
const MIB = 1 << 20;

function setUp(faults: Faults = {}, limitBytes = 1 << 30) {
  const heap = createHeap(1 << 26), files = new FaultyFiles(faults);
  files.makeDirectory(ROOT);
  const open = (slot = 3) => new QuerySpill(heap, files, { root: ROOT, limitBytes }, slot);
  const bytes = heap.allocate(2 * MIB, "query");
  for (let i = 0; i < MIB; i++) heap.u8[bytes + i] = i * 7;
  return { heap, files, open, bytes, names: () => files.all().map(({ path }) => path) };
}

Deno.test("QuerySpill reads blocks of any size and of any thread as they were written", () => {
  const { heap, open, bytes, names } = setUp({ shortWrites: true });
  const leader = open(), helper = open();
  const sizes = [1, 4_096, MIB - 8, MIB, MIB + 1, 0, 77];
  const written = sizes.flatMap((size) => [leader, helper].map((spill) => spill.write([[bytes, size]])));
  written.push(leader.write([[bytes, 3], [bytes + 10, 5]]));
  leader.flush();
  helper.flush();
  const target = bytes + MIB;
  for (const reader of [leader, helper]) {
    written.forEach((block, k) => {
      heap.u8.fill(0, target, target + MIB);
      reader.read(block, target);
      const expected = k < 2 * sizes.length
        ? heap.u8.subarray(bytes, bytes + sizes[k >> 1])
        : Uint8Array.of(...[0, 1, 2, 10, 11, 12, 13, 14].map((i) => i * 7));
      assert.ok(Buffer.from(heap.u8.subarray(target, target + block.sizeBytes)).equals(expected), `block ${k}`);
    });
  }
  helper.close(false);
  assert.equal(names().length, 2, "the leading thread removes the files");
  leader.close(true);
  assert.deepEqual(names(), []);
  assert.equal(heap.i32[SHARED_WORD.spilledUnits], 0);
  assert.ok(heap.i64[SHARED_WORD.spilledUnitsTotal / 2] > 6_000n);
});

Deno.test("QuerySpill reads blocks of its own thread that are still collected", () => {
  const { heap, open, bytes } = setUp();
  const spill = open(), first = spill.write([[bytes, 100]]);
  spill.flush();
  const second = spill.write([[bytes + 100, 100]]);
  for (const [block, from] of [[first, bytes], [second, bytes + 100]] as const) {
    spill.read(block, bytes + MIB);
    assert.deepEqual(heap.u8.slice(bytes + MIB, bytes + MIB + 100), heap.u8.slice(from, from + 100));
  }
  spill.close(true);
});

Deno.test("QuerySpill reports a full disk as 53100, and leaves nothing", () => {
  const { heap, files, open, bytes, names } = setUp({ capacityBytes: 3 * MIB });
  files.open("/reserve", "create").write([new Uint8Array(MIB)], 0);
  const spill = open();
  assert.throws(
    () => {
      for (let k = 0; k < 100; k++) spill.write([[bytes, MIB / 2]]);
    },
    { sqlState: "53100", message: /the disk is full: \/tmp\/spill\/query-3\// },
  );
  assert.deepEqual(names().filter((path) => !path.startsWith(ROOT)), ["/reserve"]);
  spill.close(true);
  assert.deepEqual(names(), ["/reserve"]);
  assert.equal(heap.i32[SHARED_WORD.spilledUnits], 0);
});

Deno.test("QuerySpill reports the space of all queries as 53400", () => {
  const { heap, open, bytes, names } = setUp({}, 2 * MIB);
  const one = open(1), other = open(2);
  one.write([[bytes, MIB]]);
  assert.throws(() => {
    for (let k = 0; k < 3; k++) other.write([[bytes, MIB]]);
  }, { sqlState: "53400", message: /2097152 bytes \(query\.spill\.limit\)/ });
  other.close(true);
  assert.equal(names().length, 1);
  one.write([[bytes, MIB / 2]]);
  one.close(true);
  assert.equal(heap.i32[SHARED_WORD.spilledUnits], 0);
});

Deno.test("QuerySpill detects damage of a block by its length or its CRC, and names the file", () => {
  for (const [what, bit] of [["the length", 1], ["the CRC", 40], ["the bytes", 64 + 8 * 500 + 3]] as const) {
    const { files, open, bytes, names } = setUp();
    const spill = open(), block = spill.write([[bytes, 1_000]]), after = spill.write([[bytes, 10]]);
    spill.flush();
    const [path] = names();
    files.flipBit(path, bit);
    assert.throws(() => spill.read(block, bytes + MIB), (error) => {
      assert.ok(error instanceof CorruptFileError, what);
      assert.ok(error.message.includes(path) && error.message.includes("the block at 0 is damaged"), error.message);
      return true;
    });
    spill.read(after, bytes + MIB);
    files.open(path, "write").truncate(after.offset + 12);
    assert.throws(() => spill.read(after, bytes + MIB), CorruptFileError, "a shorter file");
    spill.close(true);
  }
});

Deno.test("removeSpilled() removes the directories of queries and nothing else", () => {
  const { files, open, bytes, names } = setUp();
  files.open(`${ROOT}/notes`, "create");
  open().write([[bytes, 2 * MIB]]);
  removeSpilled(files, ROOT);
  assert.deepEqual(names(), [`${ROOT}/notes`]);
  removeSpilled(files, "/no/such/directory");
});
