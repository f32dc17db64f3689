/** A disk of a few megabytes, for tests of full disks. Only root on Linux can mount one. */

function run(program: string, ...args: string[]): boolean {
  try {
    return new Deno.Command(program, { args, stderr: "null" }).outputSync().success;
  } catch {
    return false;
  }
}

export interface SmallDisk {
  directory: string;
  remove(): void;
}

/** Undefined if this user cannot mount disks. */
export function smallDisk(sizeMiB: number): SmallDisk | undefined {
  const directory = Deno.makeTempDirSync({ prefix: "sundial-small-" });
  if (Deno.build.os === "linux" && run("mount", "-t", "tmpfs", "-o", `size=${sizeMiB}m`, "none", directory)) {
    return {
      directory,
      remove: () => {
        run("umount", directory);
        Deno.removeSync(directory, { recursive: true });
      },
    };
  }
  Deno.removeSync(directory);
  return undefined;
}
