/** Calls of the C library that Deno does not offer. Only for Linux with glibc. */
const SYMBOLS = {
  /** @see https://man7.org/linux/man-pages/man2/setpriority.2.html */
  setpriority: { parameters: ["i32", "u32", "i32"], result: "i32" },
  /** @see https://man7.org/linux/man-pages/man2/poll.2.html */
  poll: { parameters: ["buffer", "usize", "i32"], result: "i32" },
  /** @see https://man7.org/linux/man-pages/man2/epoll_create.2.html */
  epoll_create1: { parameters: ["i32"], result: "i32" },
  /** @see https://man7.org/linux/man-pages/man2/epoll_ctl.2.html */
  epoll_ctl: { parameters: ["i32", "i32", "i32", "buffer"], result: "i32" },
  /** @see https://man7.org/linux/man-pages/man2/epoll_wait.2.html */
  epoll_wait: { parameters: ["i32", "buffer", "i32", "i32"], result: "i32" },
  /** The results fit into 32 bits, because the buffers do. @see https://man7.org/linux/man-pages/man2/recv.2.html */
  recv: { parameters: ["i32", "buffer", "usize", "i32"], result: "i32" },
  /** @see https://man7.org/linux/man-pages/man2/send.2.html */
  send: { parameters: ["i32", "buffer", "usize", "i32"], result: "i32" },
  /** @see https://man7.org/linux/man-pages/man2/madvise.2.html */
  madvise: { parameters: ["pointer", "usize", "i32"], result: "i32" },
  /** @see https://man7.org/linux/man-pages/man3/malloc_trim.3.html */
  malloc_trim: { parameters: ["usize"], result: "i32" },
  /** @see https://man7.org/linux/man-pages/man3/mallopt.3.html */
  mallopt: { parameters: ["i32", "i32"], result: "i32" },
} as const;

export type Libc = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

let opened: Libc | null | undefined;

/** Undefined without glibc or without the permission to open it. Callers then do nothing. */
export function libc(): Libc | undefined {
  if (opened === undefined) {
    opened = null;
    try {
      if (Deno.build.os === "linux") opened = Deno.dlopen("libc.so.6", SYMBOLS).symbols;
    } catch {
      // Not found if the system uses musl.
    }
  }
  return opened ?? undefined;
}
