/** Runs psql against a server of a test. */

/** `program`: the executable. Returns what it printed for `input`, then its errors. */
export async function runPsql(program: string, port: number, input: string, ...args: string[]): Promise<string> {
  const command = new Deno.Command(program, {
    args: ["-h", "127.0.0.1", "-p", String(port), "-U", "admin", "-d", "qdb", "-X", "-A", ...args],
    env: { PGPASSWORD: "quest", LC_ALL: "C.UTF-8" },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = command.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input));
  await writer.close();
  const { stdout, stderr } = await command.output();
  return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
}
