/** All settings of the HTTP interface, for the catalogue. */
import type { Section } from "../../config/mod.ts";
import { ROUTES } from "./routes/mod.ts";
import { httpIgnored, ownHttpSettings } from "./settings.ts";

export const httpSection: Section = {
  title: "HTTP server",
  settings: [ownHttpSettings, ...ROUTES.map(({ settings }) => settings), httpIgnored],
  check(config, refuse) {
    const { user, password } = ownHttpSettings;
    const [name, secret] = [config.get(user), config.get(password)];
    if (name !== "" && secret === "") {
      refuse([password, user], `found an empty value, expected a password, because ${user.key} is set`);
    }
    if (name === "" && secret !== "") {
      refuse([user, password], `found an empty value, expected a name, because ${password.key} is set`);
    }
  },
};
