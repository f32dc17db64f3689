import assert from "node:assert/strict";
import { parse } from "./parser.ts";

/** As accepted by QuestDB 9.3.4; determined by trying every keyword at each of these positions. */
const EVERYWHERE = ["else", "having", "then", "when"];
const DEFINED = [...EVERYWHERE, "array", "declare", "ilike", "is"];
const BEFORE_COMPARISON =
  "as distinct else end except from having intersect join limit on order table then union when where with".split(" ");
const ASSIGNED = [
  ...BEFORE_COMPARISON,
  ..."all and between case false ilike in is like not null or over select true".split(" "),
];
const TABLE_ALIASES =
  ("by collate cumulative current declare else escape exclude fill filter following for groups having ignore lateral natural " +
    "nulls observation offset operator preceding respect rows then unbounded until using when").split(" ");

const places: [title: string, words: string[], text: (word: string) => string][] = [
  ["a column of CREATE TABLE", DEFINED, (word) => `create table t (${word} int, b int)`],
  ["a column of INSERT", EVERYWHERE, (word) => `insert into t (${word}, ${word}) values (1, 2)`],
  ["an alias behind AS", DEFINED, (word) => `select b as ${word} from t`],
  ["an alias", EVERYWHERE, (word) => `select b ${word} from t`],
  ["an alias of a table behind AS", DEFINED, (word) => `select * from t as ${word}`],
  ["an alias of a table", TABLE_ALIASES, (word) => `select * from t ${word}`],
  ["a table", DEFINED, (word) => `create table ${word} (b int)`],
  ["a source", EVERYWHERE, (word) => `select * from ${word}`],
  ["a table that is updated", [...EVERYWHERE, "is", "ilike"], (word) => `update ${word} set b = 1`],
  ["a WITH", EVERYWHERE, (word) => `with ${word} as (select 1 b) select * from ${word}`],
  ["in the select list", EVERYWHERE, (word) => `select ${word}, abs(${word}), 1 + ${word} from t`],
  ["behind a table", EVERYWHERE, (word) => `select t.${word} from t`],
  ["in ORDER BY", EVERYWHERE, (word) => `select * from t order by ${word}`],
  ["in GROUP BY", EVERYWHERE, (word) => `select b, count() from t group by b, ${word}`],
  ["before a comparison", BEFORE_COMPARISON, (word) => `select * from t where ${word} = 1 and ${word} < 2`],
  ["an argument", BEFORE_COMPARISON.filter((word) => word !== "distinct"), (word) => `select abs(${word}) from t`],
  ["what UPDATE sets", ASSIGNED, (word) => `update t set ${word} = 1, ${word} = 2`],
  ["a new column", ASSIGNED, (word) => `alter table t add column ${word} int`],
];
for (const [title, words, text] of places) {
  Deno.test(`keywords are names if they are ${title}`, () => {
    for (const word of words) assert.doesNotThrow(() => parse(text(word)), word);
  });
}

Deno.test("keywords of CASE stay keywords inside a CASE", () => {
  for (const word of ["when", "then", "else"]) {
    assert.throws(() => parse(`select case when a then ${word} end from t`), word);
  }
  assert.throws(() => parse("select case from t"));
  assert.throws(() => parse("select end from t"));
  parse("select when, case when when.b then 1 else 2 end, else from t".replace("when.b", "b"));
});

const quoted = [
  "create table 't' ('a b' int)",
  "insert into 't' ('a b', 'c') values (1, 2)",
  "update 't' 'u' set 'a b' = 1, 'c' = 2",
  "alter table 't' add column 'a b' int",
  "alter table 't' drop column 'a b', 'c'",
  "alter table 't' rename column 'a b' to 'c'",
  "alter table 't' alter column 'a b' type long",
  "select 'u'.a from 't' 'u'",
  "select 'u'.a from 't' as 'u' where 'u'.b = 'x'",
];
for (const text of quoted) Deno.test(`names in single quotes: ${text}`, () => void parse(text));
