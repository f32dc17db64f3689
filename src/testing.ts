/** For the tests of all rooms. */

/** Whether suites run at full length, as they do each night. Otherwise they leave out what other cases mostly cover. */
export const FULL = Deno.env.get("SUNDIAL_FULL") === "true";

/** The seed of random cases. The default is always the same, so that the result of a run depends on the commit alone. */
export const SEED = Number(Deno.env.get("SEED") ?? 1);
