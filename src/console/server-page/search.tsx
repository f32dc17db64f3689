/** A search field above a table. */
export function Search({ label, value, onChange }: { label: string; value: string; onChange(value: string): void }) {
  return (
    <input
      class="search"
      type="search"
      placeholder={label}
      aria-label={label}
      value={value}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  );
}
