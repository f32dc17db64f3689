/** The format of log lines. Writers and levels are in log.conf. */
import { bool, type Section, text } from "../config/mod.ts";

export const logSettings = {
  verbose: bool("log.level.verbose", false, "Levels as words instead of letters."),
  zone: text("log.timestamp.timezone", "Z", "Time zone of the log's times: Z or a name such as Europe/Berlin."),
  format: text("log.timestamp.format", "yyyy-MM-ddTHH:mm:ss.SSSUUUz", "Format of the log's times."),
  locale: text("log.timestamp.locale", "en", "Language of month and day names in log.timestamp.format."),
};

export const logSection: Section = { title: "Log (the writers are in log.conf)", settings: [logSettings] };
