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

  start          serves until SIGTERM or SIGINT; creates the root on the first start
  stop           stops the server of that root and waits until it has ended
  status         reports whether a server runs on that root
  health         checks the health of the server with these settings (http.min.bind.to); exit status 0 if healthy
  check-config   reports errors in server.conf, log.conf and the environment without starting
  service        installs the server as a service of systemd, launchd or (through WinSW) Windows that starts with the
                 machine, removes it, or shows its status; data is never removed
  reset-admin-password
                 sets the password of the built-in administrator to the first line of the standard input; the server of
                 that root must not be running; an empty line restores acl.admin.password

  -d DIR         the root directory (default: ./sundial-root; for a service: /var/lib/sundial)
  -f             replaces shipped files in the root, except conf/, by this version's (changed ones are kept as *.bak)
  -n             keeps running when the terminal closes (SIGHUP)
  -t TAG         a name for this server, with which stop and status find it without -d; for a service: part of its name
  -Dout=FILE     the log configuration to use instead of conf/log.conf
  -Debug         adds level DEBUG to every log writer
  --user NAME    the user that the service runs as (default: sundial, which is created; on macOS the calling user)
  --print        shows the steps of \`service\` without executing them
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
