/** The buttons at the end of a dialog's form. */

interface Props {
  /** Label of the button that submits the form. */
  confirm: string;
  isDangerous?: boolean;
  isDisabled?: boolean;
  /** Label of the other button; "": there is none. */
  cancel?: string;
  onCancel(): void;
}

export function FormButtons({ confirm, isDangerous, isDisabled, cancel = "Cancel", onCancel }: Props) {
  return (
    <p class="buttons">
      {cancel !== "" && <button type="button" onClick={onCancel}>{cancel}</button>}
      <button type="submit" class={isDangerous ? "main danger" : "main"} disabled={isDisabled}>{confirm}</button>
    </p>
  );
}
