/** The C library's calls that the runtime has no way to: on Linux with glibc, and nowhere else. */
const SYMBOLS = {
  /** @see https://man7.org/linux/man-pages/man2/setpriority.2.html */
  setpriority: { parameters: ["i32", "u32", "i32"], result: "i32" },
  /** @see https://man7.org/linux/man-pages/man2/madvise.2.html */
  madvise: { parameters: ["pointer", "usize", "i32"], result: "i32" },
  /** @see https://man7.org/linux/man-pages/man3/malloc_trim.3.html */
  malloc_trim: { parameters: ["usize"], result: "i32" },
  /** @see https://man7.org/linux/man-pages/man3/mallopt.3.html */
  mallopt: { parameters: ["i32", "i32"], result: "i32" },
} as const;

type Libc = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

let opened: Libc | null | undefined;

/** undefined without glibc, or where it may not be opened: then what it is wanted for does not happen. */
export function libc(): Libc | undefined {
  if (opened === undefined) {
    opened = null;
    try {
      if (Deno.build.os === "linux") opened = Deno.dlopen("libc.so.6", SYMBOLS).symbols;
    } catch {
      // musl has another name.
    }
  }
  return opened ?? undefined;
}
