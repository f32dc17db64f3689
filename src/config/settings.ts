/** Settings of the whole server. */
import type { Section } from "./catalogue.ts";
import { bool, ignored, int, text } from "./setting.ts";

export const generalSettings = {
  validationStrict: bool(
    "config.validation.strict",
    false,
    "Refuses to start when server.conf holds an unknown key; otherwise each is a warning.",
  ),
  instanceName: text(
    "instance.name",
    "",
    "Name of this instance: told by /settings, and in alerts where the environment gives no INSTANCE_NAME.",
  ),
  maxNameLength: int("cairo.max.file.name.length", 127, "Longest name of a table or column.", { min: 1, max: 255 }),
  readOnly: bool("readonly", false, "Refuses every change on every interface.", { aliases: ["readonly.instance"] }),
};

/** Keys of QuestDB without a meaning here. */
const ignoredKeys = [
  ignored("telemetry.enabled", "false", "this server sends no telemetry"),
];

export const generalSection: Section = { title: "General", settings: [generalSettings, ignoredKeys] };
