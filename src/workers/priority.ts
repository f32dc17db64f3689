import { libc } from "./libc.ts";

/**
 * Nice value of threads that run queries. With it, they get a tenth of a core for which another thread of the server
 * competes. The others compete for short times only, and the writer at most for one core.
 */
const NICE = 10;

/**
 * Gives the server's other threads (wires, writer, small queries) priority over the calling one, which runs queries of any length.
 * Linux only, where a nice value applies to one thread. Measured with two queries of 10 s and a bulk insert on two
 * cores, nice value 5 and none: p99 of `select 1` 29 ms instead of 89 ms, and four times as many rows. With 10 instead of 5 (`bench/fairness.ts`,
 * 64 connections, six pairs in turn at a load of 5 to 17): p99 of small queries over PG 0.15 to 0.9 of that with 5, at the median 0.56.
 */
export function yieldToOthers(): void {
  libc()?.setpriority(0, 0, NICE);
}
