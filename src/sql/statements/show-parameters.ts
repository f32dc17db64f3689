import { columns } from "../binder/metadata.ts";
import { showAll } from "./show.ts";

export const showParameters = showAll({
  kind: "showParameters",
  words: '"SHOW" "PARAMETERS"',
  reference: { syntax: "SHOW PARAMETERS", summary: "The settings of the server and the source of each value." },
  requires: ["SYSTEM ADMIN"],
  columns: columns(
    "property_path:STRING env_var_name:STRING value:STRING value_source:STRING sensitive:BOOLEAN reloadable:BOOLEAN",
  ),
  rows: ({ options }) => options.parameters(),
});
