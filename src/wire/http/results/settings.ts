/** Limits of spooled results. */
import { int, ms, size } from "../../../config/mod.ts";

export const resultSettings = {
  sizeBytesMax: size(
    "http.results.size.max",
    "1g",
    "Maximum size of one result that is spooled for the console. Further rows are omitted, which the console reports.",
    { min: 1 << 20, reloadable: true },
  ),
  totalBytesMax: size(
    "http.results.total.size.max",
    "4g",
    "Maximum size of all spooled results.",
    { min: 1 << 20, reloadable: true },
  ),
  userCountMax: int(
    "http.results.user.limit",
    40,
    "Maximum number of spooled results of one user. A further one replaces the one that was not read for the longest time.",
    { min: 1, reloadable: true },
  ),
  idleTimeoutMs: ms(
    "http.results.idle.timeout",
    "15m",
    "A spooled result that was not read for this time is removed.",
    { reloadable: true },
  ),
};
