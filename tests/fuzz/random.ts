/** Reproducible random choices; a failure prints its seed. */

export interface Random {
  /** An integer from 0 to count - 1. */
  below(count: number): number;
  of<T>(list: readonly T[]): T;
}

/** Source: mulberry32, Tommy Ettinger, 2017. */
export function randomOf(seed: number): Random {
  let state = seed | 0;
  const below = (count: number) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor(((t ^ (t >>> 14)) >>> 0) / 2 ** 32 * count);
  };
  return { below, of: (list) => list[below(list.length)] };
}
