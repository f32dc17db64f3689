/** The users and groups that a dashboard is shared with, in words. */
export const sharedText = (names: readonly string[]) =>
  names.length === 0 ? "nobody" : names.includes("*") ? "everybody" : names.join(", ");
