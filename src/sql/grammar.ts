/**
 * The grammar, over tokens: a quoted upper-case word stands for one keyword token; `"<name>"` and the like stand for one token of
 * that class. `load()` maps each of them to one character (a private-use code point). A statement becomes a string of such
 * characters, which Ohm reads without blanks in between. An expression is a flat list of operands and operators here;
 * expressions.ts applies precedence. Long lists of values are one token ("<items>", "<rows>", "<array>"), and the parser reads
 * their items itself.
 *
 * Rule names begin with a lower-case letter, so that Ohm does not skip blanks.
 */
import * as ohm from "ohm-js";
import type { Token } from "./lexer.ts";
import { READERS, STATEMENT_GRAMMAR } from "./statements/mod.ts";
import { CLASS_CHARACTERS, CLASSES, CLAUSE, LOOSE, RESERVED, type TokenClass } from "./token-classes.ts";
import recipe from "./grammar.recipe.json" with { type: "json" };

/** All rules except those of the statements. */
const COMMON = String.raw`
  expressionOnly = expr end

  // Queries. A bare table ("trades where …") is a query too, but not inside an expression, where a name is a column.
  query = prelude? setOperation tail
  subquery = prelude setOperation tail                   -- prelude
           | explicitOperation tail                      -- plain
  prelude = declare with?                                -- declare
          | with                                         -- with
  declare = "DECLARE" declaration ("," declaration)* ","?
  declaration = "OVERRIDABLE"? "<variable>" ":=" declared
  declared = "<duration>"                                -- duration
           | expr                                        -- expr
  with = "WITH" "RECURSIVE"? cte ("," cte)*
  cte = name sourceColumns? "AS" "(" query ")"
  setOperation = term (setOperator prelude? term)*
  explicitOperation = explicitTerm (setOperator prelude? term)*
  setOperator = ("UNION" | "EXCEPT" | "INTERSECT") ("ALL" | "DISTINCT")?
  // A query in parentheses is also a bare source; the parser unwraps it if nothing follows.
  term = select | bare
  explicitTerm = select
               | "(" subquery ")"                        -- nested
  tail = orderBy? limit?
  select = "SELECT" "DISTINCT"? items queriedFrom? clauses
  items = item ("," item)* ","?
  item = "*"                                             -- star
       | name "." "*"                                    -- tableStar
       | expr alias?                                     -- expr
  alias = "AS"? (name | "<string>")
  from = "FROM" source
  queriedFrom = "FROM" queried
  bare = queried clauses
  clauses = latestBy? where? (latestOn | latestBy)? sampleBy? groupBy? having? windows? pivot?
  where = "WHERE" expr
  groupBy = "GROUP" "BY" expr ("," expr)*
  having = "HAVING" expr
  windows = "WINDOW" namedWindow ("," namedWindow)*
  namedWindow = name "AS" windowSpec
  pivot = "PIVOT" "(" pivotItem ("," pivotItem)* "FOR" pivotColumn+ pivotGroup? ")" pivotName?
  pivotName = "AS" name                                  -- as
            | (aliasName | looseName)                    -- plain
  pivotItem = ~"FOR" expr pivotAlias?
  pivotAlias = "AS" (name | "<string>")                  -- as
             | ~"FOR" (name | "<string>")                -- plain
  pivotColumn = pivotTarget "IN" "<items>"               -- values
              | pivotTarget "IN" "(" query ")"           -- query
  pivotTarget = pivotUnit (pivotInfix pivotUnit)*
  pivotInfix = symbol
  pivotUnit = prefix* operand (~("IN" | "NOT") postfix)*
  pivotGroup = "GROUP" "BY" expr ("," expr)*
  pivotValue = expr alias? end
  orderBy = "ORDER" "BY" orderItem ("," orderItem)*
  orderItem = expr ("ASC" | "DESC")? nullsOrder?
  nullsOrder = "NULLS" ("FIRST" | "LAST")
  limit = "LIMIT" "," expr                               -- high
        | "LIMIT" expr "OFFSET" expr                     -- offset
        | "LIMIT" "ALL" limitOffset?                     -- all
        | ("OFFSET" expr ("ROW" | "ROWS")?)? fetch       -- fetch
        | "OFFSET" expr ("ROW" | "ROWS")? limitCount?    -- first
        | "LIMIT" expr "," expr                          -- both
        | "LIMIT" expr ","?                              -- low
        | "LIMIT"                                        -- none
  limitCount = "LIMIT" expr
  limitOffset = "OFFSET" expr
  fetch = "FETCH" ("FIRST" | "NEXT") fetchCount? ("ROW" | "ROWS") "ONLY"
  fetchCount = ~(("ROW" | "ROWS") "ONLY") expr

  sampleBy = "SAMPLE" "BY" interval sampleFrom? sampleTo? fill? align?
  interval = "-" anyNumber                               -- negative
           | ("<duration>" | "<number>" | name)          -- text
           | &("<variable>" | "<parameter>") operand     -- expr
  sampleFrom = "FROM" expr
  sampleTo = "TO" expr
  fill = "FILL" "(" fillItem ("," fillItem)* ")"
  fillItem = ("NONE" | "NULL" | "PREV" | "LINEAR") &("," | ")")  -- word
           | "PREV" "(" name ")"                         -- other
           | expr                                        -- value
  align = "ALIGN" "TO" "CALENDAR" alignZone? alignOffset?  -- calendar
        | "ALIGN" "TO" "FIRST" "OBSERVATION"             -- first
  alignZone = "TIME" "ZONE" expr
  alignOffset = "WITH" "OFFSET" expr
  latestOn = "LATEST" "ON" expr "PARTITION" "BY" expr ("," expr)*
  latestBy = "LATEST" "BY" expr ("," expr)*

  // Sources
  source = primarySource joined*
  queried = primarySource latestJoined? joined*
  latestJoined = (latestOn | latestBy) &joinWords
  joinWords = ("WINDOW" | "HORIZON") "JOIN"              -- time
            | joinType                                   -- other
  joined = "," primarySource                             -- comma
         | "WINDOW" "JOIN" primarySource joinOn? "RANGE" "BETWEEN" joinBound "AND" joinBound prevailing?  -- window
         | "WINDOW" "JOIN" primarySource joinOn? ~"RANGE"  -- noWindow
         | "HORIZON" "JOIN" primarySource joinOn? horizon "AS" name  -- horizon
         | "HORIZON" "JOIN" primarySource joinOn? ~("RANGE" | "LIST" "(")  -- noHorizon
         | joinType primarySource joinOption*            -- join
  joinType = ("INNER" | "CROSS" | "ASOF" | "LT" | "SPLICE") "JOIN"  -- plain
           | ("LEFT" | "RIGHT" | "FULL") "OUTER"? "JOIN"   -- outer
           | "JOIN"                                      -- bare
  joinOn = "ON" "(" name ("," name)+ ")"                 -- columns
         | "ON" expr                                     -- expr
  joinOption = joinOn                                    -- on
             | "USING" "(" name ("," name)* ")"          -- using
             | "TOLERANCE" "-"? anyNumber                -- tolerance
             | "TOLERANCE" &("<variable>" | "<parameter>") operand  -- toleranceOf
             | "TOLERANCE"                               -- noTolerance
  joinBound = "UNBOUNDED" ("PRECEDING" | "FOLLOWING")    -- unbounded
            | "CURRENT" "ROW"                            -- current
            | expr aliasName? ("PRECEDING" | "FOLLOWING")  -- offset
  prevailing = ("INCLUDE" | "EXCLUDE") "PREVAILING"
  horizon = "RANGE" "FROM" horizonOffset "TO" horizonOffset "STEP" horizonOffset  -- range
          | "LIST" "(" horizonOffset ("," horizonOffset)* ")"  -- list
  horizonOffset = "-"? anyNumber
  primarySource = sourceItem designated? sourceAlias? designated?
  sourceAlias = "AS" (name | "<string>") sourceColumns?  -- as
              | ~("TIMESTAMP" "(" | "LIST" "(" horizonOffset) (aliasName | looseName | "<string>") sourceColumns?  -- plain
  sourceColumns = "(" name ("," name)* ")"
  designated = "TIMESTAMP" "(" name ")"
  sourceItem = "(" showForm ")"                              -- show
             | "LATERAL"? "(" query ")"                  -- query
             | "LATERAL"? path "(" args? ")" ordinality?  -- function
             | tableName                                 -- table
             | "<variable>"                              -- variable
  ordinality = "WITH" "ORDINALITY"
  tableName = tablePart ("." tablePart)?
  tablePart = name | "<string>"

  // Expressions
  expr = unit (infix unit)*
  unit = prefix* operand postfix*
  prefix = "-" | "+" | "~" | "NOT"
  infix = symbol                                         -- symbol
        | "OPERATOR" "(" name "." symbol ")"             -- qualified
        | "IS" "NOT"? "DISTINCT" "FROM"                  -- distinct
        | ("AND" | "OR")                                 -- word
        | "NOT"? ("LIKE" | "ILIKE" | "BETWEEN" | "IN")   -- not
  postfix = "::" type                                    -- cast
          | "IS" "NOT"? ("NULL" | "TRUE" | "FALSE")      -- is
          | "NOT"? "IN" "<items>"                        -- in
          | "NOT"? "IN" "(" subquery ")"                 -- inQuery
          | "NOT"? "BETWEEN" "(" expr "," expr ")"       -- between
          | "[" subscript ("," subscript)* "]"           -- index
          | "COLLATE" path                               -- collate
          | "AT" "TIME" "ZONE" operand                   -- zone
          | "ESCAPE" "<string>"                          -- escape
          | "." name                                     -- field
          | "WITHIN" "(" expr ("," expr)* ")"            -- within
  subscript = expr? ":" expr?                            -- slice
            | expr                                       -- index
  operand = "<number>"                                   -- number
          | "<string>" ~"."                              -- string
          | "<string>" ("." name)+                       -- quotedPath
          | "NULL"                                       -- null
          | "TRUE"                                       -- true
          | "FALSE"                                      -- false
          | "<parameter>"                                -- parameter
          | "<variable>"                                 -- variable
          | "<geohash>"                                  -- geohash
          | case
          | "<array>"                                    -- array
          | "CAST" "(" expr "AS" type ")"                -- cast
          | "EXTRACT" "(" (name | "<string>") "FROM" expr ")"  -- extract
          | "TRIM" "(" name expr "FROM" expr ")"         -- trim
          | "SUBSTRING" "(" expr "FROM" expr "FOR" expr ")"  -- substring
          | "ALL" "(" expr ")"                           -- all
          | "EXISTS" "(" subquery ")"                    -- exists
          | "TIMESTAMP" "WITH" "TIME" "ZONE" "<string>"  -- zoned
          | ("TIMESTAMP" | "TIMESTAMP_NS" | "DATE" | "IPV4" | "UUID") "<string>"  -- typed
          | path "(" args? ")" nulls? over?              -- call
          | path                                         -- column
          | "(" subquery ")"                             -- query
          | "(" expr ")"                                 -- nested
  path = name ("." name)*
  args = "*"                                             -- star
       | subquery                                        -- query
       | "DISTINCT"? expr ("," expr)* orderBy?           -- list
  nulls = ("IGNORE" | "RESPECT") "NULLS"
  over = "OVER" windowSpec                               -- spec
       | "OVER" name                                     -- reference
  windowSpec = "(" aliasName? partitionBy? orderBy? frame? ")"
  partitionBy = "PARTITION" "BY" expr ("," expr)*
  frame = "CUMULATIVE"                                   -- cumulative
        | frameUnit "BETWEEN" bound "AND" bound exclude? -- between
        | frameUnit bound exclude?                       -- short
  frameUnit = "ROWS" | "RANGE" | "GROUPS"
  bound = "UNBOUNDED" ("PRECEDING" | "FOLLOWING")        -- unbounded
        | "CURRENT" "ROW"                                -- current
        | unit aliasName? ("PRECEDING" | "FOLLOWING")    -- offset
  exclude = "EXCLUDE" ("CURRENT" "ROW" | "NO" "OTHERS")  -- two
          | "EXCLUDE" ("GROUP" | "TIES")                 -- one
  case = "CASE" expr? branch+ otherwise? "END"
  branch = "WHEN" expr "THEN" expr
  otherwise = "ELSE" expr
  type = typeWords typeParameters? dimension*
  typeWords = "DOUBLE" "PRECISION"                       -- double
            | "CHARACTER" "VARYING"                      -- varying
            | "TIMESTAMP" ("WITH" | "WITHOUT") "TIME" "ZONE"  -- zone
            | name "." name                              -- schema
            | name                                       -- name
  typeParameters = "(" typeParameter ("," typeParameter)* ")"
  typeParameter = "<number>" | "<duration>" | name
  dimension = "[" "]"

  anyNumber = "<number>" | "<duration>"

  // Names: most keywords are also names where no clause can begin.
  name (a name) = "<name>" | keywordName
  aliasName (a name) = "<name>" | freeKeyword
  looseName (a name) = looseKeyword ~"("
                     | "OFFSET" ~("<name>" | "<number>" | "<parameter>" | "<variable>" | "(")
                     | "FETCH" ~("FIRST" | "NEXT")
  columnName (a name) = name | "<string>"`;

const TEXT = `Sql {${COMMON}${STATEMENT_GRAMMAR}\n}`;

/** Infix operators, in one range of characters, so that the grammar tests for all of them at once. */
const SYMBOLS = [
  "=",
  "!=",
  "<",
  "<=",
  ">",
  ">=",
  "~",
  "!~",
  "<<",
  "<<=",
  ">>",
  ">>=",
  "+",
  "-",
  "*",
  "/",
  "%",
  "||",
  "&",
  "^",
  "|",
];
const RESERVED_FROM = 0xe000;
const CLAUSE_FROM = 0xe100;
const LOOSE_FROM = 0xe180;
const FREE_FROM = 0xe200;
const FREE_TO = 0xe5ff;
const SYMBOL_FROM = 0xe800;
const PUNCTUATION_FROM = 0xea00;

/** The character of each keyword, by its upper-case spelling. */
export const KEYWORDS = new Map<string, string>();
/** The character of each operator and mark. */
export const MARKS = new Map<string, string>([["<>", String.fromCharCode(SYMBOL_FROM + 1)]]);
/** The character that represents a token in the grammar. */
export function characterOf(token: Token): string {
  switch (token.kind) {
    case "word":
      return KEYWORDS.get(token.text.toUpperCase()) ?? CLASS_CHARACTERS.name;
    case "quoted":
      return CLASS_CHARACTERS.name;
    case "operator":
      return MARKS.get(token.text)!;
    case "semicolon":
    case "end":
      throw new Error("a statement cannot contain the end of a statement");
    default:
      return CLASS_CHARACTERS[token.kind];
  }
}

/** True if a token's character is allowed where the grammar says `name`. */
export function isNameCharacter(character: string): boolean {
  return character === CLASS_CHARACTERS.name ||
    (character.charCodeAt(0) >= CLAUSE_FROM && character.charCodeAt(0) <= FREE_TO);
}

/** Names of characters in messages. */
const READABLE = new Map<string, string>();

function load(): ohm.Grammar {
  const words = [...TEXT.matchAll(/"([A-Z][A-Z0-9_]*)"/g)].map((match) => match[1]!);
  const reserved = new Set(RESERVED.split(" "));
  const clause = new Set(CLAUSE.split(" "));
  const loose = new Set(LOOSE.split(" "));
  const free = new Set(words.filter((word) => !reserved.has(word) && !clause.has(word) && !loose.has(word)));
  for (
    const [set, from] of [
      [reserved, RESERVED_FROM],
      [clause, CLAUSE_FROM],
      [loose, LOOSE_FROM],
      [free, FREE_FROM],
    ] as const
  ) {
    [...set].forEach((word, index) => KEYWORDS.set(word, String.fromCharCode(from + index)));
  }
  SYMBOLS.forEach((symbol, index) => MARKS.set(symbol, String.fromCharCode(SYMBOL_FROM + index)));
  ["(", ")", ",", ".", "[", "]", ":", "::", ":=", "{", "}"].forEach((mark, index) =>
    MARKS.set(mark, String.fromCharCode(PUNCTUATION_FROM + index))
  );
  for (const [word, character] of KEYWORDS) READABLE.set(character, word);
  for (const [mark, character] of MARKS) READABLE.set(character, mark);
  READABLE.set(MARKS.get("!=")!, "!=");
  const names: Record<TokenClass, string> = {
    name: "a name",
    number: "a number",
    duration: "a duration",
    string: "a string",
    parameter: "a parameter",
    variable: "a variable",
    geohash: "a geohash",
    items: "(",
    rows: "(",
    array: "ARRAY[",
  };
  for (const name of CLASSES) READABLE.set(CLASS_CHARACTERS[name], names[name]);

  const range = (from: number, to: number) => `"${String.fromCharCode(from)}".."${String.fromCharCode(to)}"`;
  const rules = `
  keywordName = ${range(CLAUSE_FROM, FREE_TO)}
  looseKeyword = ${range(LOOSE_FROM, FREE_FROM - 1)}
  freeKeyword = ${range(FREE_FROM, FREE_TO)}
  symbol (an operator) = ${range(SYMBOL_FROM, SYMBOL_FROM + SYMBOLS.length - 1)}
}`;
  // Remove comments first, as they may contain quotes.
  const source = TEXT.replace(/\/\/.*$/gm, "").replace(/"([^"]+)"/g, (_, text: string) => {
    const character = text.startsWith("<") && text.endsWith(">") && text.length > 2
      ? CLASS_CHARACTERS[text.slice(1, -1) as TokenClass]
      : KEYWORDS.get(text) ?? MARKS.get(text);
    if (character === undefined) throw new Error(`unknown token in the grammar: ${text}`);
    return JSON.stringify(character);
  }).replace(/\}\s*$/, rules);
  return grammarOf(source);
}

/**
 * Ohm takes 400 ms to read a grammar in its notation but 6 ms for a compiled recipe, so the recipe is stored beside the
 * grammar (`deno task docs` writes it). A recipe of a different text is ignored.
 */
function grammarOf(source: string): ohm.Grammar {
  if ((recipe[1] as { source?: string } | undefined)?.source !== source) return ohm.grammar(source);
  // Ohm exports this function without declaring it, as it is meant for generated code.
  return (ohm as unknown as { makeRecipe(recipe: unknown): ohm.Grammar }).makeRecipe(recipe);
}

/**
 * The grammar for the reference, without the names of alternatives and the rules that `STATEMENT_GRAMMAR` makes for each first word
 * of a statement, except lists of alternatives.
 */
export function grammarText(): string {
  return TEXT.replace(/^Sql \{\n|\n\}$/g, "").replace(/[ \t]+-- \w+$/gm, "").replace(/^ {2}/gm, "")
    .replace(/^\w+Statement = .*\n(?: +\| .*\n?)*/gm, "").replace(/^\w+Form = \w+\n\n?/gm, "").replace(
      /\n{3,}/g,
      "\n\n",
    ).trim();
}

/** All keywords, in lower case: those of the grammar, and those of statements that it does not read. */
export function keywords(): string[] {
  const others = READERS.flatMap(({ words, keywords = [] }) => [...words, ...keywords]);
  return [...new Set([...KEYWORDS.keys(), ...others])].map((word) => word.toLowerCase()).sort();
}

/** The contents of `grammar.recipe.json`. */
export function grammarRecipe(): string {
  return (grammar as unknown as { toRecipe(): string }).toRecipe() + "\n";
}

export const grammar: ohm.Grammar = load();

/** What the grammar expected where it failed, for messages: `"("`, `FROM`, `a name`; undefined for internal rules. */
export function readable(failure: { type?: string; toString(): string; getText(): string }): string | undefined {
  const text = failure.getText();
  const known = READABLE.get(text);
  if (known !== undefined) return known;
  const described = failure.toString();
  if (/^(a|an) \w+$/.test(described)) return described;
  return described === "end of input" ? "the end of the statement" : undefined;
}
