/** Limits of spooled results. */
import { int, ms, size } from "../../../config/mod.ts";

export const resultSettings = {
  sizeBytesMax: size(
    "http.results.size.max",
    "1g",
    "Most bytes of one result that is spooled for the console. Rows beyond are left out, and the console says so.",
    { min: 1 << 20, reloadable: true },
  ),
  totalBytesMax: size(
    "http.results.total.size.max",
    "4g",
    "Most bytes of all spooled results.",
    { min: 1 << 20, reloadable: true },
  ),
  userCountMax: int(
    "http.results.user.limit",
    40,
    "Most spooled results of one user. A further one removes the one that was not read for the longest time.",
    { min: 1, reloadable: true },
  ),
  idleTimeoutMs: ms(
    "http.results.idle.timeout",
    "15m",
    "A spooled result that was not read for so long is removed.",
    { reloadable: true },
  ),
};
