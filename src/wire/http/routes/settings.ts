/** GET /settings: information that clients of the line protocol and the console request first. */
import { generalSettings, list } from "../../../config/mod.ts";
import { VERSION } from "../../../version.ts";
import type { Reply } from "../../http1/mod.ts";
import type { Call, Route } from "../contract.ts";
import { servesLineTcp } from "../../line-tcp/settings.ts";
import { pgSettings } from "../../pg/settings.ts";
import { documentReply } from "../reply.ts";
import { httpSettings, isReadOnly } from "../settings.ts";
import { writeSettings } from "./write.ts";

const own = { paths: list("http.context.settings", "/settings", "Paths of the settings endpoint.") };

/** The settings that it reports. */
const told = {
  user: httpSettings.user,
  password: httpSettings.password,
  asksBrowsers: httpSettings.asksBrowsers,
  instanceName: generalSettings.instanceName,
  maxNameLength: generalSettings.maxNameLength,
  http: writeSettings.isServed,
  pgwire: pgSettings.enabled,
};

export const settings: Route = {
  name: "settings",
  summary: "information for QuestDB's clients and console",
  paths: own.paths,
  settings: own,
  methods: { GET: readSettings },
  open: true,
};

/** The wires that accept rows. */
const WIRES = ["http", "tcp", "pgwire"] as const;

/** Versions of the line protocol that `src/wire/line` reads: text; binary doubles and arrays; binary decimals. */
const LINE_PROTOCOL_VERSIONS = [1, 2, 3];

function readSettings(call: Call): Reply {
  const { user, password, asksBrowsers, instanceName, maxNameLength, ...served } = call.options.config.of(told);
  const isProtected = call.database.access !== undefined || (user !== "" && password !== "");
  const hasTcp = servesLineTcp(call.options.config);
  const wires = WIRES.filter((wire) => wire === "tcp" ? hasTcp : served[wire]);
  const document = {
    config: {
      "release.type": "OSS",
      "release.version": VERSION,
      ...(instanceName === "" ? {} : { "instance.name": instanceName }),
      "http.settings.readonly": true,
      ...(isProtected ? { "acl.enabled": true } : {}),
      ...(isProtected && asksBrowsers ? { "acl.basic.auth.realm.enabled": true } : {}),
      "accepting.writes": isReadOnly(call.options.config) ? [] : wires,
      "line.proto.support.versions": LINE_PROTOCOL_VERSIONS,
      "ilp.proto.transports": wires.filter((wire) => wire !== "pgwire"),
      "posthog.enabled": false,
      "posthog.api.key": null,
      "cairo.max.file.name.length": maxNameLength,
    },
    "preferences.version": 0,
    preferences: {},
  };
  return documentReply(JSON.stringify(document), "application/json; charset=utf-8");
}
