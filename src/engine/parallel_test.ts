import assert from "node:assert/strict";
import { createHeap } from "../storage/heap.ts";
import { help } from "./parallel.ts";
import { SLOT, slotWord } from "./slot.ts";

Deno.test("a helper that comes when the section has just closed leaves", () => {
  const heap = createHeap(16 << 20);
  const put = (offset: number, value: number) => void (heap.i32[slotWord(0, offset)] = value);
  for (const [word, value] of [[SLOT.section, 1], [SLOT.morselCount, 4], [SLOT.helpersMax, 1]]) put(word!, value!);
  const events: string[] = [];
  const unexpected = () => assert.fail("the section has closed");
  const didHelp = help(heap, {
    onJoin: () => {
      events.push("join");
      put(SLOT.section, 0);
    },
    contextOf: unexpected,
    release: unexpected,
    onLeave: () => void events.push("leave"),
  });
  assert.ok(didHelp);
  assert.deepEqual(events, ["join", "leave"]);
  assert.equal(heap.i32[slotWord(0, SLOT.helpers)], 0);
});
