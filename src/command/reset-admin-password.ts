/** `sundial reset-admin-password`, for a root without a running server. */
import { accessSettings } from "../access/settings.ts";
import { databaseSettings } from "../database/settings.ts";
import { ConfigError } from "../errors.ts";
import type { Command } from "./command-line.ts";
import { print } from "./print.ts";
import { loadSettings } from "./settings.ts";

const BYTES_MAX = 4096;

export const resetAdminPassword: Command = {
  async run({ root }) {
    const config = loadSettings(root);
    const { iterations, adminName } = config.of(accessSettings);
    if (Deno.stdin.isTerminal()) {
      console.error(`New password of ${adminName}; an empty line restores acl.admin.password:`);
    }
    const password = await firstLine();
    const { setAdminPassword } = await import("../database/mod.ts");
    await setAdminPassword(config.get(databaseSettings.root), password === "" ? undefined : password, iterations);
    return print(
      password === ""
        ? `from the next start, the password of ${adminName} is acl.admin.password`
        : `from the next start, ${adminName} has the new password instead of acl.admin.password`,
    );
  },
};

/** Reads the password from the standard input. An argument would be visible in the list of processes. */
async function firstLine(): Promise<string> {
  const bytes = new Uint8Array(BYTES_MAX);
  let used = 0;
  while (used < BYTES_MAX) {
    const read = await Deno.stdin.read(bytes.subarray(used));
    if (read === null) break;
    used += read;
    if (bytes.subarray(0, used).includes(0x0a)) break;
  }
  const text = new TextDecoder().decode(bytes.subarray(0, used));
  if (used === BYTES_MAX) throw new ConfigError("-", `the password is longer than ${BYTES_MAX} bytes`);
  return text.split("\n")[0]!.replace(/\r$/, "");
}
