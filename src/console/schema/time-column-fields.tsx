/** The fields for the designated timestamp and the partitions of a new table. */

export interface TimeColumn {
  /** Name of the designated timestamp; "" if there is none. */
  timestamp: string;
  partitionBy: string;
}

const UNITS = ["DAY", "HOUR", "WEEK", "MONTH", "YEAR", "NONE"];

interface Props extends TimeColumn {
  /** Columns that may be the designated timestamp. */
  times: readonly string[];
  onChange(news: Partial<TimeColumn>): void;
}

export function TimeColumnFields({ times, timestamp, partitionBy, onChange }: Props) {
  return (
    <>
      <label>
        Time column
        <select name="timestamp" onChange={(event) => onChange({ timestamp: event.currentTarget.value })}>
          <option value="">none</option>
          {times.map((time, at) => <option key={at} selected={time === timestamp}>{time}</option>)}
        </select>
      </label>
      {times.includes(timestamp) && (
        <label>
          Partitions
          <select name="partitionBy" onChange={(event) => onChange({ partitionBy: event.currentTarget.value })}>
            {UNITS.map((unit) => <option key={unit} selected={unit === partitionBy}>{unit}</option>)}
          </select>
        </label>
      )}
    </>
  );
}
