/** Compares the answers of several databases. */
/** True if both have the same rows in any order. Numbers may differ by 1e-9 of their size. */
export function sameRows(a: unknown[][], b: unknown[][]): boolean {
  if (a.length !== b.length) return false;
  const key = (row: unknown[]) => JSON.stringify(row.map((v) => typeof v === "number" ? Number(v.toPrecision(6)) : v));
  const sorted = (rows: unknown[][]) =>
    rows.map((row) => [key(row), row] as const).sort((x, y) => x[0] < y[0] ? -1 : x[0] > y[0] ? 1 : 0).map(([, row]) =>
      row
    );
  const left = sorted(a), right = sorted(b);
  return left.every((row, i) => row.every((value, k) => same(value, right[i][k])));
}

function same(a: unknown, b: unknown): boolean {
  if (typeof a === "number" && typeof b === "number") {
    return Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));
  }
  return a === b;
}
