/** SHOW of one setting of the session, or of all. */
import { SqlError } from "../../errors.ts";
import { didYouMean } from "../../nearest.ts";
import { showHint } from "../other-dialects.ts";
import type { Statement } from "../ast.ts";
import { settingNames, settingOf, settingsOf } from "../client-settings.ts";
import { at, endOf, matched, word } from "../tree-nodes.ts";
import { showKind } from "./show.ts";

interface ShowSetting extends Statement {
  kind: "showSetting";
  /** Lower case, one blank between words. */
  name: string;
  nameAt: number;
}

export const showSetting = showKind<ShowSetting>({
  kind: "showSetting",
  form: {
    words: ["SHOW"],
    grammar: String.raw`
  showSetting = "SHOW" (~("COLUMNS" | "PARTITIONS" | "CREATE") path | "ALL") name*`,
    actions: {
      showSetting(show, first, rest): ShowSetting {
        const path = matched.source.text.slice(at(first), endOf(first)).toLowerCase();
        return {
          kind: "showSetting",
          at: at(show),
          name: [path, ...rest.children.map(word)].join(" "),
          nameAt: at(first),
        };
      },
    },
  },
  reference: {
    syntax: `SHOW setting
SHOW ALL`,
    summary: "One setting of the session, or all of them.",
  },
  plan({ name: shown, nameAt }, { binding, language }) {
    const session = binding.sessionValues();
    if (shown === "all") {
      const columns = ["name", "setting", "description"].map((name) => ({ name, type: "STRING" }));
      const rows = settingsOf(session).map(({ name, value, summary }) => [name, String(value), summary]);
      return { node: "values", columns, rows, timestamp: -1, order: "none" };
    }
    const setting = settingOf(shown, session);
    if (setting === undefined) {
      const foreign = showHint(shown);
      const hint = foreign !== undefined
        ? `: ${foreign}`
        : didYouMean(shown, [...language.showForms, "all", ...settingNames(session)]);
      throw new SqlError(`SHOW does not know ${shown}${hint}`, nameAt + shown.length);
    }
    const { name, value, type } = setting;
    return { node: "values", columns: [{ name, type }], rows: [[value]], timestamp: -1, order: "none" };
  },
});
