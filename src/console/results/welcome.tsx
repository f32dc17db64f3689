/** What is shown before the first run of a tab: how to run, and statements over the demo file that run with a click. */
import { editor } from "../editor/editor.tsx";
import { may } from "../sign-in/permissions.ts";
import { tables } from "../store/schema.ts";
import { openTab } from "../store/tabs.ts";
import { isChart } from "./view-settings.ts";

interface Example {
  title: string;
  about: string;
  text: string;
  isChart?: boolean;
  isOffered?(): boolean;
}

const DEMO_TABLE = "trades";

const EXAMPLES: readonly Example[] = [
  {
    title: "Candles",
    about: "BTC prices by 6 hours, drawn",
    isChart: true,
    text: `select timestamp, first(price) open, max(price) high, min(price) low, last(price) close
from (read_parquet('trades.parquet') timestamp(timestamp))
where symbol = 'BTC-USD'
sample by 6h;`,
  },
  {
    title: "Latest rows",
    about: "The last trade of each symbol",
    text: `select *
from (read_parquet('trades.parquet') timestamp(timestamp))
latest on timestamp partition by symbol;`,
  },
  {
    title: "Time of each step",
    about: "The plan, with rows and times",
    text: `explain analyze
select symbol, side, count(), avg(price)
from read_parquet('trades.parquet')
order by symbol, side;`,
  },
  {
    title: "A table of it",
    about: `Makes the table ${DEMO_TABLE}`,
    isOffered: () => may("CREATE TABLE") && tables.value.every(({ name }) => name !== DEMO_TABLE),
    text: `create table ${DEMO_TABLE} as (
  select * from read_parquet('trades.parquet')
) timestamp(timestamp) partition by day;`,
  },
];

export function Welcome() {
  const run = ({ title, text, isChart: isDrawn = false }: Example) => {
    isChart.value = isDrawn;
    openTab(text, title);
    editor.runAll();
  };
  return (
    <div class="welcome">
      <h2>Or run an example over the demo file</h2>
      <ul>
        {EXAMPLES.filter(({ isOffered }) => isOffered?.() !== false).map((example) => (
          <li key={example.title}>
            <button type="button" onClick={() => run(example)}>
              <strong>{example.title}</strong>
              <small>{example.about}</small>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
