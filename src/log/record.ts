/** A message to the writers, as plain data that workers can post. */
export interface LogRecord {
  /** Microseconds since 1970, UTC. */
  timeMicros: number;
  level: Level;
  /** The logger's name: `http-server`. */
  logger: string;
  message: string;
}

/** In ascending severity. ADVISORY is for facts that operators should always see: versions, addresses, roots. */
export const LEVELS = ["DEBUG", "INFO", "ERROR", "CRITICAL", "ADVISORY"] as const;
export type Level = (typeof LEVELS)[number];

/** A set of levels, one bit each in the order of LEVELS. */
export type LevelSet = number;
export const levelBit = (level: Level): LevelSet => 1 << LEVELS.indexOf(level);
export const DEBUG_BIT = levelBit("DEBUG");

/**
 * `INFO` means INFO and above, `ERROR,DEBUG` the union. DEBUG means only DEBUG, as it is listed in addition to another
 * level. Returns undefined for an unknown word.
 */
export function parseLevels(text: string): LevelSet | undefined {
  let set = 0;
  for (const word of text.split(",").map((part) => part.trim().toUpperCase())) {
    if (word === "") continue;
    const index = LEVELS.indexOf(word as Level);
    if (index < 0) return undefined;
    set |= word === "DEBUG" ? DEBUG_BIT : ((1 << LEVELS.length) - 1) & ~((1 << index) - 1);
  }
  return set === 0 ? undefined : set;
}
