/** Completion of keywords, functions, tables and columns, with their documentation. */
import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { FunctionHelp } from "../server/client.ts";
import { columnsOf, language, quoted, tables } from "../store/schema.ts";
import { statementAt } from "./statements.ts";
import { tablesIn, type TableUse } from "./table-names.ts";

export async function complete(context: CompletionContext): Promise<CompletionResult | null> {
  const word = context.matchBefore(/"?[\w$]*$/);
  if (word === null || word.from === word.to && !context.explicit && !follows(context, ".")) return null;
  const text = context.state.doc.toString();
  const statement = statementAt(text, context.pos);
  const used = tablesIn(statement?.text ?? "", tables.value.map(({ name }) => name));
  const qualifier = context.matchBefore(/"?[\w$]+"?\.\w*$/)?.text.replace(/\..*$/, "").replaceAll('"', "");
  const options = qualifier === undefined
    ? [...(await columnsOfAll(used)), ...tableOptions(), ...functionOptions(), ...keywordOptions()]
    : await columnsOfAll(used.filter(({ name, alias }) => name === qualifier || alias === qualifier));
  return options.length === 0 ? null : { from: word.from, options, validFor: /^"?[\w$]*$/ };
}

const follows = ({ state, pos }: CompletionContext, text: string) => state.sliceDoc(pos - text.length, pos) === text;

async function columnsOfAll(used: readonly TableUse[]): Promise<Completion[]> {
  const found = await Promise.all(used.map(async ({ name }) => ({ name, columns: await columnsOf(name) })));
  return found.flatMap(({ name, columns }) =>
    columns.map((column) => ({
      label: column.name,
      apply: quoted(column.name),
      type: "property",
      detail: column.type,
      info: `column of ${name}`,
      boost: 3,
    }))
  );
}

function tableOptions(): Completion[] {
  return tables.value.map(({ name, timestamp }) => ({
    label: name,
    apply: quoted(name),
    type: "class",
    detail: "table",
    info: timestamp === null ? undefined : `time column: ${timestamp}`,
    boost: 2,
  }));
}

let functionsOf: { of: unknown; options: Completion[] } = { of: undefined, options: [] };

/** One option for each name; its documentation lists the overloads. */
function functionOptions(): Completion[] {
  const { functions } = language.value;
  const kindOf = (form: typeof functions[number] | undefined) =>
    form?.isAggregate ? "aggregate" : form?.isTable ? "source" : "function";
  if (functionsOf.of !== functions) {
    const byName = Map.groupBy(functions, ({ name }) => name);
    const options = [...byName].map(([name, forms]) => ({
      label: name,
      type: "function",
      detail: kindOf(forms[0]),
      apply: `${name}(`,
      info: () => documentation(forms),
      boost: 1,
    }));
    functionsOf = { of: functions, options };
  }
  return functionsOf.options;
}

function keywordOptions(): Completion[] {
  return language.value.keywords.map((label) => ({ label, type: "keyword" }));
}

function documentation(forms: readonly FunctionHelp[]): HTMLElement {
  const box = element("div", "help");
  for (const { form, summary, types, example } of forms) {
    box.append(element("code", "form", form), element("p", "", summary));
    const shown = types.slice(0, 6);
    box.append(element("pre", "types", [...shown, ...types.length > shown.length ? ["…"] : []].join("\n")));
    if (example !== undefined) box.append(element("p", "example", example.replaceAll("`", "")));
  }
  return box;
}

function element(tag: string, className: string, text = ""): HTMLElement {
  const one = document.createElement(tag);
  one.className = className;
  one.textContent = text;
  return one;
}
