/** The tables named in a statement, for completion. The text may be incomplete, so it is not parsed. */

export interface TableUse {
  name: string;
  alias?: string;
}

const NAME = /(?:"([^"]+)"|([A-Za-z_][\w$]*))/;
const USE = new RegExp(
  `(?:\\bfrom|\\bjoin|\\bupdate|\\binto|\\btable|,)\\s+${NAME.source}(?:\\s+(?:as\\s+)?(?!\\w+\\s*\\()${NAME.source})?`,
  "gi",
);
const NO_ALIAS =
  /^(?:where|on|join|asof|lt|splice|left|right|full|inner|cross|outer|latest|sample|group|order|limit|set|values|union|except|intersect|timestamp|select|window|horizon|range)$/i;

export function tablesIn(statement: string, known: readonly string[]): TableUse[] {
  const names = new Map(known.map((name) => [name.toLowerCase(), name]));
  const found: TableUse[] = [];
  for (const match of statement.matchAll(USE)) {
    const [, quoted, plain = "", quotedAlias, plainAlias] = match;
    const name = names.get((quoted ?? plain).toLowerCase());
    if (name === undefined) continue;
    const alias = quotedAlias ?? plainAlias;
    found.push({ name, alias: alias === undefined || NO_ALIAS.test(alias) ? undefined : alias });
  }
  return found;
}
