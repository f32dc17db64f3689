/** macOS: a launchd daemon. */
import { type Service, type ServiceManager, startCommand } from "./service.ts";

const label = (tag: string) => `io.sundial.${tag}`;

export const launchd: ServiceManager = {
  path: ({ tag }) => `/Library/LaunchDaemons/${label(tag)}.plist`,
  install: (service) => [
    { kind: "run", command: ["install", "-d", "-m", "0750", "-o", service.user, service.root] },
    // The root may have been created by another user.
    { kind: "run", command: ["chown", "-R", service.user, service.root] },
    { kind: "write", path: launchd.path(service), text: launchdPlist(service) },
    // launchd would keep a definition that is already loaded.
    { kind: "run", command: ["launchctl", "bootout", `system/${label(service.tag)}`], mayFail: true },
    { kind: "run", command: ["launchctl", "bootstrap", "system", launchd.path(service)] },
    { kind: "run", command: ["launchctl", "enable", `system/${label(service.tag)}`] },
  ],
  remove: (service) => [
    { kind: "run", command: ["launchctl", "bootout", `system/${label(service.tag)}`], mayFail: true },
    { kind: "remove", path: launchd.path(service) },
  ],
  status: ({ tag }) => ["launchctl", "print", `system/${label(tag)}`],
};

export function launchdPlist(service: Service): string {
  const { tag, root, user } = service;
  const entries: [string, Value][] = [
    ["Label", label(tag)],
    ["ProgramArguments", [...startCommand(service)]],
    ["UserName", user],
    ["WorkingDirectory", root],
    ["RunAtLoad", true],
    // Restart after a crash, but not after `sundial stop`.
    ["KeepAlive", { SuccessfulExit: false }],
    ["ThrottleInterval", 2],
    ["ExitTimeOut", 30],
    ["ProcessType", "Interactive"],
    ["Umask", 0o077],
    ["SoftResourceLimits", { NumberOfFiles: 1_048_576, Core: 0 }],
    ["HardResourceLimits", { NumberOfFiles: 1_048_576, Core: 0 }],
    // Only output from before log.conf is read goes here. After that, the log goes to log/ of the root, as configured
    // in log.conf.
    ["StandardErrorPath", `${root}/launchd.log`],
  ];
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
${dictionary(entries, "")}
</plist>
`;
}

type Value = string | number | boolean | string[] | Record<string, number | boolean>;

function dictionary(entries: [string, Value][], indent: string): string {
  const lines = entries.map(([key, value]) => `${indent}  <key>${key}</key>\n${element(value, `${indent}  `)}`);
  return `${indent}<dict>\n${lines.join("\n")}\n${indent}</dict>`;
}

function element(value: Value, indent: string): string {
  if (typeof value === "string") return `${indent}<string>${escapeXml(value)}</string>`;
  if (typeof value === "number") return `${indent}<integer>${value}</integer>`;
  if (typeof value === "boolean") return `${indent}<${value}/>`;
  if (Array.isArray(value)) {
    return `${indent}<array>\n${value.map((item) => element(item, `${indent}  `)).join("\n")}\n${indent}</array>`;
  }
  return dictionary(Object.entries(value), indent);
}

export function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
