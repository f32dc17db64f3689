/** A path that redirects to another one. The query is kept, because links to the console contain their text in it. */
import type { Route } from "../contract.ts";

export function redirect(to: string): Route {
  return {
    name: "redirect",
    summary: `leads to ${to}`,
    paths: [],
    settings: {},
    methods: {
      GET({ request: { target } }) {
        const question = target.indexOf("?");
        const query = question < 0 || to.includes("?") ? "" : target.slice(question);
        return { status: 301, headers: [["Location", to + query]] };
      },
    },
    open: true,
  };
}
