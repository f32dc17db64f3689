/** The flags, permissions and unstable features of the program are defined only in the task `start` of deno.json. */
const config = JSON.parse(Deno.readTextFileSync(new URL("../deno.json", import.meta.url)));

/** Everything between `deno run` and `main.ts`. */
export const START_FLAGS: readonly string[] = /deno run (.*?) main\.ts/.exec(config.tasks.start)![1].split(" ");

/** The same for tests, with the development lock file: the one of `start` lists no development tools. */
export const DEVELOPMENT_FLAGS: readonly string[] = START_FLAGS.map((flag) =>
  flag.startsWith("--lock=") ? "--lock=dev.lock" : flag
);

/** Runs a command of this Deno in the repository and returns its exit code. */
export async function deno(...args: string[]): Promise<number> {
  const child = new Deno.Command(Deno.execPath(), { args, cwd: new URL("..", import.meta.url) }).spawn();
  return (await child.status).code;
}
