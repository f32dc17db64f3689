export function print(text: string, status = 0): number {
  console.log(text);
  return status;
}
