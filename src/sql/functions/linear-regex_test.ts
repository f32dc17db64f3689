import assert from "node:assert/strict";
import { linearRegex } from "./linear-regex.ts";

const SOURCES = [
  ...[
    "^.$",
    "^[^a]$",
    "\\W",
    "^\\W\\b",
    "a|\\u2028",
    "\\p{L}+",
    "(?<x>.){2}",
    "^(?:.{1,3}){1,9}$",
    "(.){17}",
    "x{20}|😀{0,20}?",
    "^.{2}$",
    "\\u{1f600}",
    "[\\-}]",
    "é",
  ],
  ...[
    "kA-Zs",
    "[a-f]x",
    "[^A-C]",
    "[+-Z]",
    "[Y-b]+",
    "(?<second>a)b",
    "((A+)+)+",
    "(?-m:^)a",
    "\\[a-c\\]",
    "[\\]a-c-]",
    "[\\w-]",
    "\\x41",
    "\\bS\\B",
  ],
  ...["a-b", "[a\\-c]", "x{2,3}", "(?:ab)+?c", "[^k]", "[ -~]b"],
];
const TEXTS = [
  ...[
    "",
    "a",
    "A",
    "b",
    "B",
    "aa",
    "aAb",
    "😀",
    "😀😀",
    "-",
    "}",
    "é",
    "É",
    " \u2028",
    "\ue000",
    "\u212a",
    "\u017f",
    "k",
    "K",
    "s",
  ],
  ...["ka-zs", "KA-ZS", "DX", "z", "Z", "_", "`", "[A-C]", "]", "C", "xXx", "ABabC", "A-B", "as", "Sa"],
];

Deno.test("linearRegex() gives the same matches as the flag u", () => {
  for (const source of SOURCES) {
    for (const flags of ["u", "us", "ui", "uim"]) {
      const regex = linearRegex(source, flags, false), all = linearRegex(source, flags, true);
      for (const text of TEXTS) {
        const title = `/${source}/${flags} ${text}`;
        assert.equal(regex.test(text), new RegExp(source, flags).test(text), title);
        const by = (...found: unknown[]) =>
          `<${found[0]}|${found[2] ?? ""}|${(found.at(-1) as Record<string, string>)?.second ?? ""}>`;
        let replaced = "", last = 0;
        all.each(text, (found, index, names) => {
          replaced += text.slice(last, index) + by(...found, index, text, names);
          last = index + found[0]!.length;
        });
        assert.equal(replaced + text.slice(last), text.replace(new RegExp(source, flags + "g"), by), title);
      }
    }
  }
});

Deno.test("linearRegex() terminates where backtracking would not", async () => {
  const url = new URL("./linear-regex.ts", import.meta.url).href;
  const code = `import { linearRegex } from "${url}";
    for (const flags of ["u", "ui"]) console.log(linearRegex("(a+)+$", flags, false).test("😀" + "A".repeat(5000) + "a".repeat(5000) + "!"));
    for (const source of ["(\\\\p{L}+)+$", "(a{1,30}){1,30}b", "((((a+)+)+)+)+b", "(a+)+b[0-9]{32}", "(?-m:^)(a|a)+(?-m:$)", "(é|a+)+b"]) {
      console.log(linearRegex(source, "u", false).test("a".repeat(5000) + "!"));
    }`;
  // Run with the V8 flag of the task `start`, which is not set in tests.
  const flag = "--v8-flags=--enable-experimental-regexp-engine-on-excessive-backtracks";
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", flag, "--no-lock", `data:application/typescript,${encodeURIComponent(code)}`],
  }).output();
  assert.deepEqual(new TextDecoder().decode(stdout).trim().split("\n"), Array(8).fill("false"));
});
