/** Flags, permissions and unstable features of the program stand in one place: the task `start` of deno.json. */
const config = JSON.parse(Deno.readTextFileSync(new URL("../deno.json", import.meta.url)));

/** All between `deno run` and `main.ts`. */
export const START_FLAGS: readonly string[] = /deno run (.*?) main\.ts/.exec(config.tasks.start)![1].split(" ");

/** The same for tests: the lock file of the start lists no tool of development. */
export const DEVELOPMENT_FLAGS: readonly string[] = START_FLAGS.map((flag) =>
  flag.startsWith("--lock=") ? "--lock=dev.lock" : flag
);

/** Runs a command of this Deno in the repository, and says how it ended. */
export async function deno(...args: string[]): Promise<number> {
  const child = new Deno.Command(Deno.execPath(), { args, cwd: new URL("..", import.meta.url) }).spawn();
  return (await child.status).code;
}
