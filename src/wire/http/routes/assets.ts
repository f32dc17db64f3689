/** GET /assets/NAME: scripts and styles of the web console. */
import { acceptedCoding } from "../compression.ts";
import type { HeaderList } from "../../http1/mod.ts";
import type { Route } from "../contract.ts";
import { notFound } from "../reply.ts";

export const ASSETS_PATH = "/assets/";

export const assets: Route = {
  name: "assets",
  summary: "files of the web console",
  usage: "GET /assets/…",
  // One path for each file.
  paths: [],
  settings: {},
  methods: {
    GET({ path, request, options }) {
      const asset = options.console.assets.get(path.slice(path.lastIndexOf("/") + 1));
      if (asset === undefined) return notFound();
      const isCompressed = acceptedCoding(request.headers.get("accept-encoding"), ["gzip"]) === "gzip";
      return {
        status: 200,
        headers: [
          ["Content-Type", asset.contentType],
          ["Cache-Control", "public, max-age=31536000, immutable"],
          ["Vary", "Accept-Encoding"],
          ...isCompressed ? [["Content-Encoding", "gzip"]] as HeaderList : [],
        ],
        body: isCompressed ? asset.gzip : asset.bytes,
      };
    },
  },
  open: true,
};
