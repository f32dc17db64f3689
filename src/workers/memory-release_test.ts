import assert from "node:assert/strict";
import vm from "node:vm";
import { createHeap } from "../storage/heap.ts";
import { doChore, releaseAfterQuery } from "./memory-release.ts";

Deno.test("a thread collects garbage when its heap has grown since it was first looked at, not because it has code", () => {
  let collections = 0;
  const { runInNewContext } = vm;
  vm.runInNewContext = () => () => collections++;
  try {
    const heap = createHeap(1 << 20), code = Array.from({ length: 1_000_000 }, (_, k) => ({ k }));
    const afterQueries = (count: number) => {
      for (let k = 0; k < count; k++) {
        releaseAfterQuery(heap, { madeBytes: 0, limitBytes: 1 << 30 });
        while (doChore());
      }
      return collections;
    };
    assert.equal(afterQueries(64), 0, "what is there at first is no garbage");
    const more = Array.from({ length: 1_000_000 }, (_, k) => ({ k }));
    assert.equal(afterQueries(64), 1);
    assert.equal(code.length + more.length, 2_000_000);
  } finally {
    vm.runInNewContext = runInNewContext;
  }
});
