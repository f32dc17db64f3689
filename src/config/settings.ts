/** Settings of the whole server. */
import type { Section } from "./catalogue.ts";
import { bool, ignored, int, memoryShare, size, text } from "./setting.ts";

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
  largeStatementBytes: size(
    "query.text.memory.size",
    memoryShare(48, { minMib: 8 }),
    "Bytes of the statements of more than 256k that are received or carried out at the same time. Others wait, up to a minute. A longer " +
      "statement is carried out alone. Each takes some twelve times as much memory until it has ended.",
    { defaultSaid: "a 48th of the machine's memory, at least 8m", min: 65_536 },
  ),
  readOnly: bool("readonly", false, "Refuses all changes on all interfaces.", { aliases: ["readonly.instance"] }),
};

/** Keys of QuestDB without a meaning here. */
const ignoredKeys = [
  ignored("telemetry.enabled", "false", "this server sends no telemetry"),
];

export const generalSection: Section = { title: "General", settings: [generalSettings, ignoredKeys] };
