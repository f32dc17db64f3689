import assert from "node:assert/strict";
import { AccessRecords, decodeRecords } from "./access.ts";
import { realFiles } from "./files.ts";

Deno.test("records of access control are read as they were stored, in any script", () => {
  const root = Deno.makeTempDirSync({ prefix: "sundial-access-" });
  const records: [string, string][] = [["principal/alice", '{"kind":"user"}'], ["principal/zoë", '{"name":"Zoë 😀"}'], [
    "x",
    "",
  ]];
  const stored = new AccessRecords();
  stored.apply(records, 7);
  stored.store(realFiles, root);
  const loaded = new AccessRecords();
  loaded.load(realFiles, root, stored.generation);
  const { stored: payload, changes } = loaded.takeUnpublished();
  assert.deepEqual([changes, loaded.lsn, loaded.changed], [[], 7, false]);
  assert.deepEqual([...decodeRecords(payload!)], records);
  loaded.apply([["x", null], ["y", "1"]], 8);
  assert.deepEqual(loaded.takeUnpublished(), { changes: [["x", null], ["y", "1"]] });
  loaded.store(realFiles, root);
  const again = new AccessRecords();
  again.load(realFiles, root, loaded.generation);
  assert.deepEqual([...decodeRecords(again.takeUnpublished().stored!)], [...records.slice(0, 2), ["y", "1"]]);
  Deno.removeSync(root, { recursive: true });
});

Deno.test("a group that fails leaves the records of access control as they were", () => {
  const records = new AccessRecords();
  records.apply([["a", "1"], ["b", "1"]], 1);
  const undo = records.savepoint();
  records.apply([["a", "2"], ["b", null], ["c", "1"]], 2);
  records.apply([["a", "3"], ["b", "3"]], 3);
  undo();
  records.check([{ key: "a", before: "1", after: null }, { key: "b", before: "1", after: null }]);
  records.check([{ key: "c", before: null, after: "1" }]);
  assert.deepEqual([records.lsn, records.takeUnpublished().changes], [1, [["a", "1"], ["b", "1"]]]);
  records.apply([["c", "2"]], 2);
  assert.deepEqual(records.takeUnpublished(), { changes: [["c", "2"]] });
});
