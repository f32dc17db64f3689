/** Formats values for display and copying. */

const NUMBER = /^(?:BYTE|SHORT|INT|LONG|FLOAT|DOUBLE|DECIMAL.*|LONG256)$/;

export const isNumeric = (type: string): boolean => NUMBER.test(type);

export function textOf(value: unknown): string {
  return value === null ? "null" : typeof value === "object" ? JSON.stringify(value) : String(value);
}
