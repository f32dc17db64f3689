import assert from "node:assert/strict";
import { Outage } from "./outage.ts";

function outage() {
  const lines: string[] = [];
  let now = 0, probes = 0;
  const made = new Outage("keys", () => probes++, {
    critical: (message) => lines.push(`C ${message}`),
    advisory: (message) => lines.push(`A ${message}`),
  }, () => now);
  return { made, lines, probes: () => probes, at: (seconds: number) => now = seconds * 1000 };
}

Deno.test("Outage: one critical line after a minute without an answer, and a line when the provider answers again", () => {
  const { made, lines, at } = outage();
  for (let seconds = 0; seconds <= 50; seconds += 10) {
    at(seconds);
    made.failed("refused");
  }
  assert.deepEqual(lines, []);
  for (let seconds = 60; seconds <= 200; seconds += 10) {
    at(seconds);
    made.failed("refused");
  }
  assert.deepEqual(lines, ["C the identity provider (keys) has been down for 60 s: refused"]);
  at(205);
  made.answered();
  assert.deepEqual(lines.slice(1), ["A the identity provider (keys) is available again after 205 s"]);
  at(300);
  made.failed("refused");
  at(359);
  made.failed("refused");
  made.answered();
  assert.equal(lines.length, 2, "an outage of less than a minute is no alert");
});

Deno.test("Outage: probes while there are no other requests, until there is an answer", async () => {
  const lines: string[] = [];
  let probes = 0;
  const made = new Outage("keys", () => probes++, { critical: (line) => lines.push(line), advisory() {} }, () => 0, 5);
  made.failed("refused");
  while (probes < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  made.answered();
  const before = probes;
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.equal(probes, before);
});
