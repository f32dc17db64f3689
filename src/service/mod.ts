/** Installs the server as a system service, and checks the system's limits. */
import { checkTag } from "../config/mod.ts";
import { ConfigError } from "../errors.ts";
import { launchd } from "./launchd.ts";
import type { Service, ServiceManager, Step } from "./service.ts";
import type { System } from "./system.ts";
import { systemd } from "./systemd.ts";
import { winsw, wrapperPath } from "./windows.ts";

export { advice, limitsOf } from "./limits.ts";
export { type Service, serviceName } from "./service.ts";
export { defaultServiceRoot, defaultServiceUser, type System, thisSystem } from "./system.ts";

const MANAGERS: Partial<Record<typeof Deno.build.os, ServiceManager>> = {
  linux: systemd,
  darwin: launchd,
  windows: winsw,
};
const ACTIONS = ["install", "remove", "status"] as const;
export type ServiceAction = (typeof ACTIONS)[number];

export function isServiceAction(text: string): text is ServiceAction {
  return (ACTIONS as readonly string[]).includes(text);
}

/**
 * Returns the exit status of the command line. `show`: prints the steps instead of executing them. @throws
 * {ConfigError}
 */
export function serviceCommand(action: ServiceAction, service: Service, show: boolean, system: System): number {
  checkNames(service);
  const manager = MANAGERS[system.os];
  if (manager === undefined) {
    throw new ConfigError("service", `service: unknown service manager for ${system.os}`);
  }
  if (action === "status") {
    if (!show) return system.run(manager.status(service), false);
    system.print(shellText(manager.status(service)));
    return 0;
  }
  const steps = manager[action](service);
  if (show) {
    for (const step of steps) showStep(step, system);
    return 0;
  }
  if (!system.isAdministrator) {
    throw new ConfigError(
      "service",
      `service: ${action} needs an administrator (sudo); --print shows the steps`,
    );
  }
  if (system.os === "linux" && !system.exists("/run/systemd/system")) {
    throw new ConfigError("service", "service: systemd does not run on this machine; --print shows the steps");
  }
  if (system.os === "windows" && !system.exists(wrapperPath(service))) {
    throw new ConfigError(
      "service",
      `service: ${wrapperPath(service)} is missing: download WinSW-x64.exe (2.12 or later) from ` +
        "github.com/winsw/winsw/releases, save it under that name, and try again",
    );
  }
  for (const step of steps) takeStep(step, system);
  system.print(
    `service ${action === "install" ? "installed and started" : "removed; the root was not changed"}: ${
      manager.path(service)
    }`,
  );
  return 0;
}

function checkNames({ tag, user, root }: Service): void {
  checkTag(tag);
  if (!/^[A-Za-z_][\w.-]{0,31}$/.test(user)) {
    throw new ConfigError("--user", `--user: found "${user}", expected a user name`);
  }
  // The service's user becomes the owner of the root and everything in it.
  if (
    /[\n\r\0]/.test(root) ||
    /^(\/[^/]*|\/(usr|var|etc)\/[^/]+|[A-Za-z]:\\?)$/.test(root.replace(/\/+$/, "") || "/") && !/sundial/i.test(root)
  ) {
    throw new ConfigError(
      "-d",
      `-d: ${root} belongs to the system: expected a directory of its own, such as /var/lib/sundial`,
    );
  }
}

function takeStep(step: Step, system: System): void {
  if (step.kind === "write") return system.write(step.path, step.text);
  if (step.kind === "remove") return system.remove(step.path);
  if (step.unless !== undefined && system.run(step.unless, true) === 0) return;
  const status = system.run(step.command, step.mayFail === true);
  if (status !== 0 && !step.mayFail) {
    throw new ConfigError("service", `service: "${shellText(step.command)}" ended with ${status}`);
  }
}

function showStep(step: Step, { os, print }: System): void {
  if (step.kind === "write") {
    print(os === "windows" ? `rem ${step.path}` : `cat > ${shellText([step.path])} <<'END'`);
    print(os === "windows" ? step.text : `${step.text}END`);
  } else if (step.kind === "remove") print(`rm -f ${shellText([step.path])}`);
  else {
    const unless = step.unless ? `${shellText(step.unless)} || ` : "";
    print(unless + shellText(step.command) + (step.mayFail ? " || true" : ""));
  }
}

function shellText(command: readonly string[]): string {
  return command.map((word) => /^[\w/.:=@+,\\-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`).join(" ");
}
