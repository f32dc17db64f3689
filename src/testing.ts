/** For the tests of all rooms. */

/** Whether suites run at full length, as they do each night. Otherwise they leave out what other cases mostly cover. */
export const FULL = Deno.env.get("SUNDIAL_FULL") === "true";
