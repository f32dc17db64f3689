/** Uniform in [0, 2^32): xorshift32, seeded for every query. Source: Marsaglia, "Xorshift RNGs", 2003. */
export function seededRandom(): () => number {
  let state = (Math.random() * 2 ** 32) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}
