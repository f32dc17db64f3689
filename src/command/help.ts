/** `sundial --help` and `sundial --help keys`. */
import { settingsOf } from "../config/mod.ts";
import { VERSION } from "../version.ts";
import type { Command } from "./command-line.ts";
import { print } from "./print.ts";
import { SECTIONS } from "./settings.ts";

const HELP = `Sundial ${VERSION}: a SQL time-series database

  sundial [start] [-d DIR] [-f] [-n] [-t TAG] [-Dout=FILE] [-Debug]
  sundial stop | status [-d DIR] [-t TAG]
  sundial health [-d DIR]
  sundial check-config [-d DIR] [-Dout=FILE]
  sundial service install | remove | status [-d DIR] [-t TAG] [--user NAME] [-Dout=FILE] [-Debug] [--print]
  sundial reset-admin-password [-d DIR] < FILE
  sundial version
  sundial --help [keys]

  start          serves until SIGTERM or SIGINT; makes the root on first start
  stop           ends the server of that root, and waits until it has ended
  status         tells whether a server runs on that root
  health         asks the server of these settings how it is (http.min.bind.to); the exit status is 0 when it is well
  check-config   reports what is wrong in server.conf, log.conf and the environment, without starting
  service        makes the server a service of systemd, launchd or (through WinSW) Windows that starts with the machine,
                 takes it away, or asks about it; the data stays where it is
  reset-admin-password
                 sets the password of the built-in administrator to the first line of the standard input; the server of
                 that root must not run; an empty line goes back to acl.admin.password

  -d DIR         the root directory (default: ./sundial-root; of a service: /var/lib/sundial)
  -f             exchanges shipped files in the root for this version's (changed ones are kept as *.bak), never conf/
  -n             goes on when the terminal closes (SIGHUP)
  -t TAG         a name for this server, by which stop and status find it without -d; of a service: a part of its name
  -Dout=FILE     log configuration instead of conf/log.conf
  -Debug         level DEBUG for every log writer
  --user NAME    who the service runs as (default: sundial, who is made; on macOS who calls)
  --print        shows what \`service\` would do, and does nothing
  --help keys    every setting with its default
`;

export const help: Command = {
  run: ({ rest }) => print(rest[0] === "keys" ? keysHelp() : HELP.trimEnd()),
  takesWords: true,
};

export const version: Command = { run: () => print(VERSION) };

function keysHelp(): string {
  const lines: string[] = [];
  for (const section of SECTIONS) {
    lines.push("", section.title);
    for (const setting of settingsOf(section)) {
      const byDefault = setting.secret
        ? ""
        : setting.defaultSaid ?? (typeof setting.default === "string" ? setting.default : "");
      lines.push(`  ${setting.key}${byDefault === "" ? "" : ` (${byDefault})`}`, `      ${setting.sentence}`);
    }
  }
  return lines.join("\n").trimStart();
}
