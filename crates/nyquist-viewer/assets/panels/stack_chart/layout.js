// The boxes of a stack chart by depth, and the box at a position. Pure.

/** @typedef {{depth: number, start: number, end: number, fn: number}} Box */

/**
 * @param {readonly import('../../api.js').ChartBox[]} boxes
 * @returns {Box[][]} by depth, each row from left to right
 */
export function rowsOf(boxes) {
  /** @type {Box[][]} */
  const rows = [];
  for (const [depth, start, end, fn] of boxes) {
    while (rows.length <= depth) rows.push([]);
    rows[depth]?.push({ depth, start, end, fn });
  }
  for (const row of rows) row.sort((a, b) => a.start - b.start);
  return rows;
}

/**
 * @param {Box[][]} rows
 * @param {number} depth
 * @param {number} time
 * @returns {Box | null}
 */
export function boxAt(rows, depth, time) {
  const row = rows[depth] ?? [];
  let low = 0;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (/** @type {Box} */ (row[middle]).start <= time) low = middle + 1;
    else high = middle;
  }
  const box = row[low - 1];
  return box && time < box.end ? box : null;
}
