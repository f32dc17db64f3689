/** A path that redirects to another one. */
import type { Route } from "../contract.ts";

export function redirect(to: string): Route {
  return {
    name: "redirect",
    summary: `leads to ${to}`,
    paths: [],
    settings: {},
    methods: { GET: () => ({ status: 301, headers: [["Location", to]] }) },
    open: true,
  };
}
