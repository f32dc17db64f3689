/** GET /settings: information that clients of the line protocol and the console request first. */
import type { Reply } from "../../http1/mod.ts";
import type { Call, Route } from "../contract.ts";
import { documentReply } from "../reply.ts";

export const settings: Route = { name: "settings", paths: ["/settings"], methods: { GET: readSettings }, open: true };

/** Versions of the line protocol that `src/wire/line` reads: text; binary doubles and arrays; binary decimals. */
const LINE_PROTOCOL_VERSIONS = [1, 2, 3];

function readSettings(call: Call): Reply {
  const { config } = call.options;
  const document = {
    config: {
      "release.type": "OSS",
      "release.version": config.version,
      ...(config.instanceName === "" ? {} : { "instance.name": config.instanceName }),
      "http.settings.readonly": true,
      ...(config.user !== "" && config.password !== "" ? { "acl.enabled": true } : {}),
      "accepting.writes": config.readOnly ? [] : config.acceptingWrites,
      "line.proto.support.versions": LINE_PROTOCOL_VERSIONS,
      "ilp.proto.transports": config.acceptingWrites.filter((wire) => wire !== "pgwire"),
      "posthog.enabled": false,
      "posthog.api.key": null,
      "cairo.max.file.name.length": config.maxNameLength,
    },
    "preferences.version": 0,
    preferences: {},
  };
  return documentReply(JSON.stringify(document), "application/json; charset=utf-8");
}
