/** The time range of a dashboard: up to now, between two times, or all. */
import { ask } from "../app/dialogs.tsx";
import { MenuButton } from "../app/menu.tsx";
import { notify } from "../store/notices.ts";
import { isRange, LASTS, type Range, rangeText } from "./range.ts";

export function RangeChoice({ range, onChange }: { range: Range; onChange(range: Range): void }) {
  return (
    <MenuButton
      text={rangeText(range)}
      items={[
        ...Object.keys(LASTS).map((last) => ({
          name: rangeText({ last }),
          isChosen: "last" in range && range.last === last,
          run: () => onChange({ last }),
        })),
        { name: "All times", isChosen: "all" in range, run: () => onChange({ all: true }) },
        { name: "From … to …", isChosen: "from" in range, run: () => askTimes(range, onChange) },
      ]}
    />
  );
}

async function askTimes(range: Range, onChange: (range: Range) => void): Promise<void> {
  const now = new Date().toISOString().slice(0, 16);
  const { from, to } = "from" in range ? range : { from: now.slice(0, 10), to: now };
  const answer = await ask({
    title: "Time range, in UTC",
    fields: [
      { name: "from", label: "From, as 2026-01-31 or 2026-01-31T12:00", value: from },
      { name: "to", label: "To", value: to },
    ],
    confirm: "Show",
  });
  if (answer === undefined) return;
  const next = { from: answer.from.replace(" ", "T"), to: answer.to.replace(" ", "T") };
  if (!isRange(next)) notify("Expected a time in the form 2026-01-31 or 2026-01-31T12:00.");
  else onChange(next);
}
