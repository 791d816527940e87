// The positions of a flame graph's rows: roots at the bottom or top, callers of the zoomed box first. Pure.

export const ROW = 18;

/**
 * @typedef {object} View
 * @property {boolean} icicle whether the roots are on top
 * @property {number} parents the number of rows of callers before the root
 * @property {number} depth the number of rows of the tree
 * @property {number} height of the window
 * @property {number} scroll the scroll position
 */

/**
 * The height of all rows, at least the window's.
 * @param {View} view
 */
export function contentHeight(view) {
  return Math.max(view.height, (view.parents + view.depth) * ROW + 2);
}

/**
 * The upper edge of a row in the window; rows are numbered from the root's side, callers first.
 * @param {View} view
 * @param {number} row
 */
export function rowTop(view, row) {
  return (view.icicle ? row * ROW + 1 : contentHeight(view) - (row + 1) * ROW - 1) - view.scroll;
}

/**
 * The row at a vertical position in the window.
 * @param {View} view
 * @param {number} y
 */
export function rowAt(view, y) {
  const place = y + view.scroll;
  return Math.floor((view.icicle ? place - 1 : contentHeight(view) - 1 - place) / ROW);
}

/**
 * The visible rows.
 * @param {View} view
 * @returns {[number, number]} first and last
 */
export function rowsInView(view) {
  const ends = [rowAt(view, 0), rowAt(view, view.height)];
  return [Math.max(0, Math.min(...ends)), Math.min(view.parents + view.depth - 1, Math.max(...ends))];
}

/**
 * The number of rows beyond the window, on the side of the callees.
 * @param {View} view
 */
export function rowsBeyond(view) {
  const [first, last] = rowsInView(view);
  return last < first ? 0 : view.parents + view.depth - 1 - last;
}

/**
 * The scroll position at which a row is visible.
 * @param {View} view
 * @param {number} row
 */
export function scrollTo(view, row) {
  const top = rowTop(view, row) + view.scroll;
  if (top < view.scroll) return top;
  return top + ROW > view.scroll + view.height ? top + ROW - view.height : view.scroll;
}
