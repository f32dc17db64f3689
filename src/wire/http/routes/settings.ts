/** GET /settings: information that clients of the line protocol and the console request first. */
import type { Database } from "../../../api.ts";
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
const reported = {
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

/**
 * The settings that a browser needs to sign in with the identity provider. Addresses are null while the provider is
 * down.
 */
function signOn({ access }: Database): Record<string, unknown> {
  if (access?.provider === undefined) return {};
  const { settings, endpoints } = access.provider;
  return {
    "acl.oidc.enabled": true,
    "acl.oidc.client.id": settings.clientId,
    "acl.oidc.redirect.uri": settings.redirectUri === "" ? null : settings.redirectUri,
    "acl.oidc.scope": settings.scope,
    "acl.oidc.pkce.required": true,
    "acl.oidc.state.required": true,
    "acl.oidc.clock.tolerance": Math.ceil(settings.clockToleranceMs / 1000),
    "acl.oidc.groups.encoded.in.token": settings.groupsInToken,
    "acl.oidc.issuer": endpoints?.issuer ?? null,
    "acl.oidc.authorization.endpoint": endpoints?.authorization_endpoint ?? null,
    "acl.oidc.token.endpoint": endpoints?.token_endpoint ?? null,
    "acl.oidc.public.keys.endpoint": endpoints?.jwks_uri ?? null,
    "acl.oidc.end.session.endpoint": endpoints?.end_session_endpoint ?? null,
  };
}

function readSettings(call: Call): Reply {
  const { user, password, asksBrowsers, instanceName, maxNameLength, ...served } = call.options.config.of(reported);
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
      ...signOn(call.database),
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
