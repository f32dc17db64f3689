/** The files of which the console is built. */

/** Besides those in `src/console/`. */
export const MADE_WITH = ["deno.lock", "scripts/console/build.ts", "src/auth/oidc/algorithms.ts"];

/** `path`: from the root of the repository. */
export function isSource(path: string): boolean {
  return MADE_WITH.includes(path) || /^src\/console\/.*(?<!_test\.tsx?)$/.test(path);
}
