/** For the tests of all layers. */

/** Whether suites run at full length, as they do each night. Otherwise they leave out what other cases mostly cover. */
export const FULL = Deno.env.get("SUNDIAL_FULL") === "true";

/** The seed of random cases. The default is always the same, so that the result of a run depends on the commit alone. */
export const SEED = Number(Deno.env.get("SEED") ?? 1);

/**
 * Returns a source of numbers from 0 to below a bound, which are always the same for a seed. They are made of the upper bits, as the lower ones of this
 * generator repeat soon. Source: Knuth, The Art of Computer Programming, volume 2, 3.2.1; the constants of Numerical Recipes.
 */
export function randomOf(seed: number): (below: number) => number {
  let state = seed * 7919;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 2 ** 32 * below);
  };
}
