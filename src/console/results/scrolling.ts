/**
 * Maps the scroll position of an element to rows. Browsers limit the height of elements (Firefox to some 17 million
 * pixels), so the element is lower than its rows if these are many. Its scroll bar then moves faster than the rows, and
 * the wheel is handled here.
 */

const HEIGHT_MAX_PX = 10_000_000;

export interface Scale {
  /** Height of the element with the rows. */
  heightPx: number;
  /** Position in the rows, in pixels, for a scroll position. */
  toRows(scrollTop: number): number;
  toScroll(rowsTop: number): number;
}

/** `viewPx`: height of the rows in view. */
export function scaleOf(rowCount: number, rowPx: number, viewPx: number): Scale {
  const rowsPx = rowCount * rowPx, heightPx = Math.min(HEIGHT_MAX_PX, rowsPx);
  // The ends of both scales coincide: the last row is visible where the element cannot be scrolled further.
  const factor = heightPx < rowsPx ? (rowsPx - viewPx) / Math.max(1, heightPx - viewPx) : 1;
  return {
    heightPx,
    toRows: (scrollTop) => Math.max(0, Math.min(Math.max(0, rowsPx - viewPx), scrollTop * factor)),
    toScroll: (rowsTop) => rowsTop / factor,
  };
}
