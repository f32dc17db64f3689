import assert from "node:assert/strict";
import { ConfigError } from "../errors.ts";
import { launchdPlist } from "./launchd.ts";
import { advice, limitsOf, serviceCommand, type System } from "./mod.ts";
import type { Service } from "./service.ts";
import { systemdUnit } from "./systemd.ts";
import { winswXml } from "./windows.ts";

const service: Service = {
  tag: "sundial",
  root: "/var/lib/sundial",
  program: ["/usr/local/bin/sundial"],
  user: "sundial",
};

class FakeSystem implements System {
  readonly done: string[] = [];
  readonly files = new Map<string, string>();
  readonly printed: string[] = [];
  fails = new Set<string>();
  isAdministrator = true;
  constructor(readonly os: System["os"], ...files: string[]) {
    for (const path of ["/run/systemd/system", ...files]) this.files.set(path, "");
  }
  exists = (path: string) => this.files.has(path);
  write = (path: string, text: string) => {
    this.files.set(path, text);
    this.done.push(`write ${path}`);
  };
  remove = (path: string) => {
    this.files.delete(path);
    this.done.push(`remove ${path}`);
  };
  run = (command: readonly string[]) => {
    this.done.push(command.join(" "));
    return this.fails.has(command[0]) ? 1 : 0;
  };
  print = (line: string) => void this.printed.push(line);
}

Deno.test("service install makes user, root and unit, and enables it; remove leaves the root", () => {
  const system = new FakeSystem("linux");
  system.fails.add("id");
  serviceCommand("install", service, false, system);
  assert.deepEqual(system.done, [
    "id -u sundial",
    "useradd --system --user-group --no-create-home --home-dir /var/lib/sundial --shell /usr/sbin/nologin sundial",
    "install -d -m 0750 -o sundial /var/lib/sundial",
    "chown -R sundial: /var/lib/sundial",
    "write /etc/systemd/system/sundial.service",
    "systemctl daemon-reload",
    "systemctl enable sundial.service",
    "systemctl restart sundial.service",
  ]);
  system.done.length = 0;
  serviceCommand("remove", service, false, system);
  assert.deepEqual(system.done, [
    "systemctl disable --now sundial.service",
    "remove /etc/systemd/system/sundial.service",
    "systemctl daemon-reload",
  ]);
});

Deno.test("service install --print changes nothing", () => {
  for (const os of ["linux", "darwin", "windows"] as const) {
    const system = new FakeSystem(os);
    assert.equal(serviceCommand("install", service, true, system), 0);
    assert.deepEqual(system.done, []);
    assert.ok(system.printed.some((line) => line.includes("/usr/local/bin/sundial")));
  }
});

Deno.test("service install --print prints a script for a shell, with every word quoted correctly", {
  ignore: Deno.build.os === "windows",
}, async () => {
  const system = new FakeSystem("linux");
  const root = "/srv/it's $HOME";
  serviceCommand("install", { ...service, root }, true, system);
  const names = ["id", "useradd", "install", "chown", "systemctl"];
  const functions = names.map((name) => `${name}() { printf '%s|' ${name} "$@"; echo; [ ${name} != id ]; }`);
  const script = [...functions, ...system.printed].join("\n").replaceAll(
    "/etc/systemd/system/sundial.service",
    "/dev/null",
  );
  const { stdout, success } = await new Deno.Command("sh", { args: ["-euc", script] }).output();
  assert.ok(success);
  const lines = new TextDecoder().decode(stdout).split("\n");
  assert.equal(lines[2], `install|-d|-m|0750|-o|sundial|${root}|`);
  assert.equal(lines.at(-2), "systemctl|restart|sundial.service|");
});

Deno.test("service reports what is missing before it changes anything", () => {
  const system = new FakeSystem("linux");
  system.files.clear();
  assert.throws(
    () => serviceCommand("install", service, false, system),
    /systemd does not run on this machine; --print/,
  );
  system.isAdministrator = false;
  assert.throws(() => serviceCommand("remove", service, false, system), /remove needs an administrator/);
  assert.deepEqual(system.done, []);
  assert.equal(serviceCommand("remove", service, true, system), 0);
});

const words: [string, Service["program"], RegExp][] = [
  [
    "the program of several words, in somebody's home",
    ["/home/a/deno", "run", "-A", "/home/a/main.ts"],
    /^ExecStart=\/home\/a\/deno run -A \/home\/a\/main\.ts start -d \/var\/lib\/sundial -t sundial$[^]*^ProtectHome=read-only$/m,
  ],
  [
    "dollars: doubled in words, but not in the executable's name",
    ["/opt/a$b", "$c"],
    /^ExecStart=\/opt\/a\$b \$\$c start /m,
  ],
  [
    "blanks, quotes, percent signs, backslashes",
    ["/opt/a b", 'x"y', "50%", "a\\b"],
    /^ExecStart="\/opt\/a b" "x\\"y" 50%% "a\\\\b" start /m,
  ],
];
for (const [title, program, expected] of words) {
  Deno.test(`systemdUnit(): ${title}`, () => assert.match(systemdUnit({ ...service, program }), expected));
}

Deno.test("a failing step ends the installation and is reported", () => {
  const system = new FakeSystem("linux");
  system.fails.add("systemctl");
  assert.throws(() => serviceCommand("install", service, false, system), /"systemctl daemon-reload" ended with 1/);
});

const refused: [string, Partial<Service>, string][] = [
  ["a tag with a slash", { tag: "../x" }, "-t"],
  ["a user with a blank", { user: "a b" }, "--user"],
  ["the root of the file system", { root: "/" }, "-d"],
  ["a directory of the system", { root: "/etc" }, "-d"],
  ["a directory of another program", { root: "/var/lib" }, "-d"],
];
for (const [title, change, key] of refused) {
  Deno.test(`service refuses ${title}`, () => {
    assert.throws(
      () => serviceCommand("install", { ...service, ...change }, true, new FakeSystem("linux")),
      (error: ConfigError) => error instanceof ConfigError && error.key === key,
    );
  });
}

Deno.test("the Windows service names the wrapper that is missing", () => {
  const windows: Service = { ...service, root: "C:\\data\\sundial", program: ["C:\\sundial.exe"] };
  assert.throws(
    () => serviceCommand("install", windows, false, new FakeSystem("windows")),
    /C:\\data\\sundial\\service\\sundial\.exe is missing: download WinSW-x64\.exe/,
  );
  const system = new FakeSystem("windows", "C:\\data\\sundial\\service\\sundial.exe");
  serviceCommand("install", windows, false, system);
  assert.deepEqual(system.done, [
    "write C:\\data\\sundial\\service\\sundial.xml",
    "icacls C:\\data\\sundial /grant *S-1-5-19:(OI)(CI)M /T /Q",
    "eventcreate /L APPLICATION /SO sundial /T INFORMATION /ID 1 /D the service is installed",
    "C:\\data\\sundial\\service\\sundial.exe stop",
    "C:\\data\\sundial\\service\\sundial.exe uninstall",
    "C:\\data\\sundial\\service\\sundial.exe install",
    "C:\\data\\sundial\\service\\sundial.exe start",
  ]);
});

Deno.test("winswXml() quotes paths for Windows' argument parser", () => {
  const xml = winswXml({ ...service, tag: "a&b", root: "C:\\my data\\", program: ["C:\\Program Files\\sundial.exe"] });
  assert.match(xml, /<executable>C:\\Program Files\\sundial\.exe<\/executable>/);
  assert.match(xml, /<arguments>start -d &quot;C:\\my data\\\\&quot; -t a&amp;b<\/arguments>/);
  assert.match(xml, /<id>sundial-a&amp;b<\/id>/);
});

/** A structural check like plutil's: nesting of elements, and keys before values. */
Deno.test("launchdPlist() is well formed, and its dictionaries alternate keys and values", () => {
  const plist = launchdPlist({ ...service, root: "/Users/a&b/<data>" });
  const open: { name: string; children: string[] }[] = [{ name: "", children: [] }];
  for (const [, close, name, empty] of plist.replace(/<[?!][^>]*>/g, "").matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (close) {
      const { name: opened, children } = open.pop()!;
      assert.equal(opened, name);
      if (name === "dict") children.forEach((child, k) => assert.equal(child === "key", k % 2 === 0));
    } else {
      open.at(-1)!.children.push(name);
      if (!empty) open.push({ name, children: [] });
    }
  }
  assert.deepEqual(open.map(({ name, children }) => [name, children]), [["", ["plist"]]]);
  assert.match(plist, /<string>\/Users\/a&amp;b\/&lt;data&gt;<\/string>/);
  assert.match(plist, /<key>Label<\/key>\s*<string>io\.sundial\.sundial<\/string>/);
});

const hasSystemd = Deno.build.os === "linux" &&
  await new Deno.Command("systemd-analyze", { args: ["--version"], stdout: "null", stderr: "null" }).output().then(
    ({ success }) => success,
    () => false,
  );
if (!hasSystemd) console.log("skipped: systemd's own look at the unit, as systemd-analyze is not installed");

Deno.test({
  name: "systemd finds nothing wrong with the unit, and rates it as safe",
  ignore: !hasSystemd,
  fn: async () => {
    for (const root of ["/var/lib/sundial", "/srv/my data/100% $ours"]) {
      const directory = Deno.makeTempDirSync();
      const path = `${directory}/sundial.service`;
      // `verify` requires an existing executable, and looks up the units' user only on a real machine.
      Deno.writeTextFileSync(path, systemdUnit({ ...service, root, program: [Deno.execPath()] }));
      const analyze = async (...args: string[]) => {
        const { success, stdout, stderr } = await new Deno.Command("systemd-analyze", {
          args,
          env: { SYSTEMD_PAGER: "" },
        }).output();
        const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
        assert.ok(success, text);
        return text;
      };
      assert.equal(await analyze("verify", "--man=no", path), "");
      // 0 is best: services without any of this have 9.6. The threshold is in tenths: 20 is 2.0.
      await analyze("security", "--offline=true", "--threshold=20", path);
      Deno.removeSync(directory, { recursive: true });
    }
  },
});

Deno.test("limits are reported only if they are too low", () => {
  const files: Record<string, string> = {
    "/proc/self/limits":
      "Limit                     Soft Limit           Hard Limit           Units\nMax open files            1024                 524288               files\n",
    "/proc/sys/vm/overcommit_memory": "2\n",
    "/proc/sys/vm/max_map_count": "1000\n",
  };
  const low = limitsOf(2 ** 30, (path) => files[path]);
  assert.deepEqual(low, { openFiles: 1024, overcommit: 2, mapCount: 1000, memoryBytes: 2 ** 30 });
  const lines = advice(low, { memoryBytes: 2 ** 30 });
  assert.deepEqual(lines.map((line) => /open|overcommit|max_map_count|memory\.size/.exec(line)![0]), [
    "open",
    "overcommit",
    "max_map_count",
    "memory.size",
  ]);
  assert.deepEqual(
    advice({ openFiles: 65_536, overcommit: 0, mapCount: 65_530, memoryBytes: 2 ** 34 }, { memoryBytes: 2 ** 33 }),
    [],
  );
  assert.deepEqual(advice(limitsOf(2 ** 34, () => undefined), { memoryBytes: 2 ** 32 }), []);
});
