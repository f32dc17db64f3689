/** A service on any system: the files to write and the commands to run, as data that can be shown first. */

/** A program and its arguments. */
export type Command = readonly [program: string, ...args: string[]];

export interface Service {
  /** `sundial`, or a tag that distinguishes several servers on a machine. */
  tag: string;
  root: string;
  /** The executable and the arguments before the command. There are no arguments if the program is compiled. */
  program: Command;
  /** The user that the service runs as. */
  user: string;
  /** Further arguments of `start`. */
  options?: readonly string[];
}

export type Step =
  | { kind: "write"; path: string; text: string }
  | { kind: "remove"; path: string }
  /** `unless`: skip this if that command succeeds. `mayFail`: continue after a failure. */
  | { kind: "run"; command: Command; unless?: Command; mayFail?: boolean };

/** A system's service manager. */
export interface ServiceManager {
  /** Path of the service definition. */
  path(service: Service): string;
  install(service: Service): Step[];
  remove(service: Service): Step[];
  status(service: Service): Command;
}

/** The command of the server itself. */
export function startCommand({ program, root, tag, options = [] }: Service): Command {
  return [...program, "start", "-d", root, "-t", tag, ...options];
}

/** `sundial`, or `sundial-TAG`. */
export function serviceName(tag: string): string {
  return tag === "sundial" ? tag : `sundial-${tag}`;
}
