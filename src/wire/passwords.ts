/** Comparing secrets. */

/** The time it takes tells nothing of where the texts differ. */
export function equalInConstantTime(given: string, wanted: string): boolean {
  let difference = given.length ^ wanted.length;
  for (let index = 0; index < wanted.length; index++) difference |= given.charCodeAt(index) ^ wanted.charCodeAt(index);
  return difference === 0;
}
