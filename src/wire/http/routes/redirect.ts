/** A path that stands for another one. */
import type { Route } from "../contract.ts";

export function redirect(to: string): Route {
  return {
    name: "redirect",
    paths: [],
    methods: { GET: () => new Response(null, { status: 301, headers: [["location", to], ["content-length", "0"]] }) },
    open: true,
  };
}
