import assert from "node:assert/strict";
import { AccessRecords } from "./access.ts";
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
  assert.deepEqual([loaded.takeUnpublished(), loaded.lsn, loaded.changed], [records, 7, false]);
  Deno.removeSync(root, { recursive: true });
});
