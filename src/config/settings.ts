/** Settings of the whole server. */
import type { Section } from "./catalogue.ts";
import { bool, ignored, int, text } from "./setting.ts";

export const generalSettings = {
  validationStrict: bool(
    "config.validation.strict",
    false,
    "Refuses to start if server.conf contains an unknown key; otherwise unknown keys are warnings.",
  ),
  instanceName: text(
    "instance.name",
    "",
    "Name of this instance: returned by /settings, and used in alerts if the environment sets no INSTANCE_NAME.",
  ),
  maxNameLength: int("cairo.max.file.name.length", 127, "Maximum length of the name of a table or column.", {
    min: 1,
    max: 255,
  }),
  busyMicros: int(
    "shared.busy.poll.micros",
    50,
    "Microseconds for which threads look for the next request before they sleep, as long as it usually comes within this time. " +
      "Clients that send one request after the other get their answers sooner. 0: they sleep at once.",
    { min: 0, max: 1000 },
  ),
  readOnly: bool("readonly", false, "Refuses all changes on all interfaces.", { aliases: ["readonly.instance"] }),
};

/** Keys of QuestDB without a meaning here. */
const ignoredKeys = [
  ignored("telemetry.enabled", "false", "this server sends no telemetry"),
];

export const generalSection: Section = { title: "General", settings: [generalSettings, ignoredKeys] };
