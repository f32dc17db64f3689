/** A CSV file for the server, with the names and types that the user has chosen. */
import type { CsvForm } from "../server/client.ts";
import type { Mapping } from "./mapping.ts";

export interface MappedCsv {
  file: Blob;
  /** Types that are not those found. */
  schema: { name: string; type: string }[];
  /** Further ones of /imp. */
  parameters: Record<string, string>;
}

export function mappedCsv(file: Blob, form: CsvForm, mappings: readonly Mapping[]): MappedCsv {
  const included = mappings.filter(({ isIncluded }) => isIncluded);
  const schema = included.filter(({ found, type }) => type !== found).map(({ name, type }) => ({ name, type }));
  const omitted = mappings.flatMap(({ isIncluded }, at) => isIncluded ? [] : [at]);
  const omit: Record<string, string> = omitted.length === 0 ? {} : { omit: omitted.join(",") };
  if (included.every(({ source, name }) => source === name)) return { file, schema, parameters: omit };
  const { delimiter, headBytes } = form;
  const field = (text: string) => `"${text.replaceAll('"', '""')}"`;
  const isPlain = (text: string) => !/["\r\n]/.test(text) && !text.includes(delimiter);
  const header = mappings.map(({ name }) => isPlain(name) ? name : field(name)).join(delimiter);
  return {
    file: new Blob([`${header}\n`, file.slice(headBytes)]),
    schema,
    parameters: { ...omit, forceHeader: "true", delimiter },
  };
}
