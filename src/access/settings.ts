/** The settings of access control. */
import { bool, int, seconds, type Section, text } from "../config/mod.ts";

export const accessSettings = {
  enabled: bool("acl.enabled", false, "Access control: clients sign in, and need permissions."),
  adminName: text("acl.admin.user", "admin", "Name of the built-in administrator, who has every permission."),
  adminPassword: text("acl.admin.password", "quest", "Password of the built-in administrator.", {
    secret: true,
    reloadable: true,
  }),
  adminSignsIn: bool("acl.admin.user.enabled", true, "The built-in administrator can sign in."),
  asksBrowsers: bool(
    "acl.basic.auth.realm.enabled",
    false,
    "Browsers ask for the password themselves, instead of showing the console's sign-in page.",
  ),
  allowsClearText: bool(
    "acl.clear.text.passwords",
    false,
    "With acl.enabled, accepts passwords in clear text from other machines without TLS.",
  ),
  nameLengthMax: int(
    "acl.entity.name.max.length",
    255,
    "Maximum length of the name of a user, group or service account.",
    {
      min: 1,
    },
  ),
  iterations: int("acl.password.hash.iteration.count", 100_000, "Iterations of SCRAM-SHA-256 for new passwords.", {
    min: 4096,
    max: 10_000_000,
  }),
  tokenRefreshThresholdMs: seconds(
    "acl.rest.token.refresh.threshold",
    "10",
    "The expiry of a REST token with REFRESH is extended at most once in this time.",
  ),
};

export const accessSection: Section = {
  title: "Access control",
  settings: [accessSettings],
  check(config, refuse) {
    const { enabled, adminSignsIn, adminName, adminPassword } = accessSettings;
    if (!config.get(enabled) || !config.get(adminSignsIn)) return;
    for (const setting of [adminName, adminPassword]) {
      if (config.get(setting) === "") refuse([setting, enabled], "found an empty value, expected a name");
    }
  },
};
