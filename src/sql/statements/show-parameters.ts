import type { Statement } from "../ast.ts";
import { metadataPlan } from "../binder/metadata.ts";
import { at } from "../tree-nodes.ts";
import { showKind } from "./show.ts";

export const showParameters = showKind<Statement>({
  kind: "showParameters",
  form: {
    words: ["SHOW"],
    grammar: String.raw`
  showParameters = "SHOW" "PARAMETERS"`,
    actions: {
      showParameters: (show, _parameters) => ({ kind: "showParameters", at: at(show) }),
    },
  },
  reference: { syntax: "SHOW PARAMETERS", summary: "The settings of the server, and where each value comes from." },
  requires: ["SYSTEM ADMIN"],
  plan({ at }, { binding }) {
    binding.requires.add("SYSTEM ADMIN", at);
    return metadataPlan("show_parameters", [], at);
  },
});
