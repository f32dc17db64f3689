/** Questions to the user, one at a time. */
import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { FormButtons } from "./form-buttons.tsx";
import { useModal } from "./modal.ts";

export interface Field<Name extends string = string> {
  name: Name;
  label: string;
  value?: string;
  choices?: readonly string[];
}

export interface Question<Name extends string = string> {
  title: string;
  /** A statement or another text, shown unchanged. */
  text?: string;
  fields?: readonly Field<Name>[];
  /** Label of the confirming button. */
  confirm: string;
  /** Label of the other button. Default: Cancel; "": there is none. */
  cancel?: string;
  isDangerous?: boolean;
}

/** By the names of the fields. */
type Answer<Name extends string = string> = Record<Name, string> | undefined;

const asked = signal<{ question: Question; answer(values: Answer): void } | undefined>(undefined);

/** Resolves to the values of the fields, or undefined if the user cancels. */
export function ask<Name extends string>(question: Question<Name>): Promise<Answer<Name>> {
  asked.value?.answer(undefined);
  return new Promise((resolve) => {
    const answer = (values: Answer) => {
      asked.value = undefined;
      // The dialog gives a value for each field.
      resolve(values as Answer<Name>);
    };
    asked.value = { question, answer };
  });
}

export function Dialogs() {
  const { value } = asked;
  return value === undefined ? null : <Dialog key={value.question.title} {...value} />;
}

function Dialog({ question, answer }: { question: Question; answer(values: Answer): void }) {
  const dialog = useModal();
  // Typing replaces a given value.
  useLayoutEffect(() => dialog.current!.querySelector("input")?.select(), []);
  const { title, text, fields = [], confirm, cancel, isDangerous } = question;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    answer(Object.fromEntries(fields.map(({ name }) => [name, String(form.get(name) ?? "").trim()])));
  };
  return (
    <dialog class="dialog" ref={dialog} aria-labelledby="dialog-title" onClose={() => answer(undefined)}>
      <form onSubmit={submit}>
        <h2 id="dialog-title">{title}</h2>
        {text !== undefined && <pre tabIndex={0}>{text}</pre>}
        {fields.map(({ name, label, value, choices }) => (
          <label key={name}>
            {label}
            {choices === undefined
              ? <input name={name} defaultValue={value} required autocomplete="off" />
              : (
                <select name={name} defaultValue={value}>
                  {choices.map((choice) => <option key={choice} selected={choice === value}>{choice}</option>)}
                </select>
              )}
          </label>
        ))}
        <FormButtons {...{ confirm, cancel, isDangerous }} onCancel={() => answer(undefined)} />
      </form>
    </dialog>
  );
}
