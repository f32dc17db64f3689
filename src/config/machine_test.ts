import assert from "node:assert/strict";
import { groupMemoryBytes } from "./machine.ts";

const cases: [string, Record<string, string>, number][] = [
  ["no Linux", {}, Infinity],
  ["a group without a limit", { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n" }, Infinity],
  ["a container's", { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "1000\n" }, 1000],
  [
    "a service's, within a slice that allows less",
    {
      "/proc/self/cgroup": "0::/system.slice/sundial.service\n",
      "/sys/fs/cgroup/system.slice/sundial.service/memory.max": "2000\n",
      "/sys/fs/cgroup/system.slice/memory.max": "1500\n",
    },
    1500,
  ],
  [
    "a path of the host, in a container",
    { "/proc/self/cgroup": "0::/docker/0123\n", "/sys/fs/cgroup/memory.max": "900\n" },
    900,
  ],
  [
    "the first version of control groups",
    {
      "/proc/self/cgroup": "12:cpu,cpuacct:/x\n4:memory:/docker/0123\n1:name=systemd:/x\n0::/\n",
      "/sys/fs/cgroup/memory/docker/0123/memory.limit_in_bytes": "800\n",
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    },
    800,
  ],
];
for (const [title, files, expected] of cases) {
  Deno.test(`groupMemoryBytes(): ${title}`, () => assert.equal(groupMemoryBytes((path) => files[path]), expected));
}
