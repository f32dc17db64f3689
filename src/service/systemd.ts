/** Linux: a systemd unit with only the permissions that a database needs. */
import { type Service, type ServiceManager, serviceName, startCommand } from "./service.ts";

export const systemd: ServiceManager = {
  path: ({ tag }) => `/etc/systemd/system/${serviceName(tag)}.service`,
  install: (service) => {
    const { user, root, tag } = service;
    return [
      {
        kind: "run",
        command: [
          "useradd",
          "--system",
          "--user-group",
          "--no-create-home",
          "--home-dir",
          root,
          "--shell",
          "/usr/sbin/nologin",
          user,
        ],
        unless: ["id", "-u", user],
      },
      { kind: "run", command: ["install", "-d", "-m", "0750", "-o", user, root] },
      // The root may have been created by another user. An empty group after the colon means that user's group,
      // whatever its name.
      { kind: "run", command: ["chown", "-R", `${user}:`, root] },
      { kind: "write", path: systemd.path(service), text: systemdUnit(service) },
      { kind: "run", command: ["systemctl", "daemon-reload"] },
      { kind: "run", command: ["systemctl", "enable", `${serviceName(tag)}.service`] },
      // Not `enable --now`, which would leave a running service on the old definition.
      { kind: "run", command: ["systemctl", "restart", `${serviceName(tag)}.service`] },
    ];
  },
  remove: (service) => [
    { kind: "run", command: ["systemctl", "disable", "--now", `${serviceName(service.tag)}.service`], mayFail: true },
    { kind: "remove", path: systemd.path(service) },
    { kind: "run", command: ["systemctl", "daemon-reload"] },
  ],
  status: ({ tag }) => ["systemctl", "status", "--no-pager", `${serviceName(tag)}.service`],
};

export function systemdUnit(service: Service): string {
  const { root, tag, user } = service;
  const isAtHome = [root, ...service.program].some((path) => /^\/(home|root|run\/user)(\/|$)/.test(path));
  return `# Written by \`sundial service install\`. To change it, use \`systemctl edit ${serviceName(tag)}\`.
[Unit]
Description=Sundial time-series database${tag === "sundial" ? "" : ` (${tag})`}
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
User=${user}
ExecStart=${startCommand(service).map(commandWord).join(" ")}
WorkingDirectory=${root.replaceAll("%", "%%")}
Restart=on-failure
RestartSec=2s
# SIGTERM ends it within 5 s. Acknowledged rows survive even SIGKILL.
TimeoutStopSec=30s
UMask=0077
LimitNOFILE=1048576
# No core dumps, because memory contains query texts and rows.
LimitCORE=0

# The server writes only its root. Add a cairo.backup.root that is elsewhere.
ProtectSystem=strict
ReadWritePaths=${quoted(root)}
ProtectHome=${isAtHome ? "read-only" : "yes"}
PrivateTmp=yes
PrivateDevices=yes
NoNewPrivileges=yes
# For a port below 1024, add CAP_NET_BIND_SERVICE here and to AmbientCapabilities.
CapabilityBoundingSet=
AmbientCapabilities=
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
# ProcSubset=pid would hide /proc/meminfo, from which the pool size is computed.
RemoveIPC=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
# AF_NETLINK is needed to list the addresses of the machine.
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
SystemCallArchitectures=native
# V8 needs mprotect, madvise and membarrier, which are all in @system-service. Other calls fail with EPERM.
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @obsolete @keyring @setuid
SystemCallErrorNumber=EPERM
# Must stay off: queries are compiled to machine code, whose pages are written and then executed.
MemoryDenyWriteExecute=no

[Install]
WantedBy=multi-user.target
`;
}

/** In arguments systemd also replaces $x, but not in the path of the executable. */
function commandWord(word: string, index: number): string {
  return quoted(index === 0 ? word : word.replaceAll("$", () => "$$"));
}

/** systemd replaces %x and interprets backslashes, even inside quotes. */
function quoted(text: string): string {
  const safe = text.replaceAll("\\", "\\\\").replaceAll("%", "%%");
  return /^[\w/.:=@%$+,-]+$/.test(safe) ? safe : `"${safe.replaceAll('"', '\\"')}"`;
}
