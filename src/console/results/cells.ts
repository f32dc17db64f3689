/** Formats values for display and copying. */

const NUMBER = /^(?:BYTE|SHORT|INT|LONG|FLOAT|DOUBLE|DECIMAL.*|LONG256)$/;
const TIME = /^(?:TIMESTAMP|TIMESTAMP_NS|DATE)$/;
const ISO = /^(\d+-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z$/;

export type Zone = "UTC" | "local";

export const isNumeric = (type: string): boolean => NUMBER.test(type);
export const isTime = (type: string): boolean => TIME.test(type);

export function textOf(value: unknown): string {
  return value === null ? "null" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/**
 * Times arrive in UTC with all their digits, which Date does not support. So only the part before the fraction is
 * converted.
 */
export function shownText(value: unknown, type: string, zone: Zone): string {
  const parts = zone === "local" && isTime(type) && typeof value === "string" ? ISO.exec(value) : null;
  if (parts === null) return textOf(value);
  const at = new Date(`${parts[1]}Z`);
  const two = (part: number) => String(part).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
  return `${day} ${time}${parts[2] ?? ""} ${offsetOf(at)}`;
}

/** "+02:00" */
function offsetOf(at: Date): string {
  const minutes = -at.getTimezoneOffset();
  const two = (part: number) => String(Math.floor(part)).padStart(2, "0");
  return `${minutes < 0 ? "-" : "+"}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
}
