/** The file that lists the bundled packages as `name@version`. A dependency of which nothing is used is not among them. */
export const PACKAGES = "packages.json";
