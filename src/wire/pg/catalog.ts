/**
 * Questions that clients ask about PostgreSQL's catalogue before they begin, and that have no rows here whatever the tables
 * are: they are answered without the catalogue.
 */
import type { Prepared, ResultColumn } from "../../door.ts";

interface Question {
  pattern: RegExp;
  columns: ResultColumn[];
}

const QUESTIONS: Question[] = [
  {
    // postgres.js looks for the array types of the database when it connects; there are no arrays yet.
    pattern:
      /^\s*select b\.oid, b\.typarray from pg_catalog\.pg_type a left join pg_catalog\.pg_type b on b\.oid = a\.typelem where a\.typcategory = 'A' /,
    columns: [{ name: "oid", type: "INT" }, { name: "typarray", type: "INT" }],
  },
];

/** The question as a statement that gives no rows; undefined when it is none of them. */
export function emptyCatalogQuery(text: string): Prepared | undefined {
  if (!text.includes("pg_type")) return undefined;
  const folded = text.replace(/\s+/g, " ");
  const columns = QUESTIONS.find(({ pattern }) => pattern.test(folded))?.columns;
  if (columns === undefined) return undefined;
  return {
    columns,
    timestamp: -1,
    parameters: [],
    category: "query",
    compileNs: 0,
    execute: async () => ({
      kind: "rows",
      columns,
      timestamp: -1,
      chunks: (async function* () {})(),
      totalRows: () => 0,
      fused: false,
    }),
  };
}
