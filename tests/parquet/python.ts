/** Python with pyarrow, if available: `.ci/run` installs it and sets its path. */
import { fromFileUrl } from "../paths.ts";

const PYTHON = Deno.env.get("PYARROW_PYTHON") ?? "python3";

export async function python(script: string, ...args: string[]): Promise<string> {
  const path = fromFileUrl(`./parquet/${script}`);
  const { success, stdout, stderr } = await new Deno.Command(PYTHON, { args: [path, ...args] }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

/** Without it, prints a line about what is skipped. */
export async function hasPyarrow(suite: string): Promise<boolean> {
  const run = async () =>
    await new Deno.Command(PYTHON, { args: ["-c", "import pyarrow.parquet"], stdout: "null", stderr: "null" }).output();
  const { success } = await run().catch(() => ({ success: false }));
  if (!success) console.log(`skipped: ${suite}: ${PYTHON} with pyarrow is not installed`);
  return success;
}
