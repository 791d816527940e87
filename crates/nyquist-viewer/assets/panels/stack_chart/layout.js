// The boxes of a stack chart by depth, and the box at a position. Pure.

/** @typedef {{depth: number, start: number, end: number, fn: number, eighths: number | null}} Box `eighths`: how much of the time is covered, if it stands for several boxes */

/**
 * @param {readonly (import('../../api.js').ChartBox | import('../../api.js').JoinedBoxes)[]} boxes
 * @returns {Box[][]} by depth, each row from left to right
 */
export function rowsOf(boxes) {
  /** @type {Box[][]} */
  const rows = [];
  for (const [depth, start, end, fn, eighths] of boxes) {
    while (rows.length <= depth) rows.push([]);
    rows[depth]?.push({ depth, start, end, fn, eighths: eighths ?? null });
  }
  for (const row of rows) row.sort((a, b) => a.start - b.start);
  return rows;
}

/** The height of a level. */
export const ROW = 16;

/** Levels are asked for in steps of so many, and so many more than are in sight, so that a small scroll asks for nothing. */
const STEP = 8;

/**
 * The levels whose narrow boxes are asked for.
 * @param {number} scroll
 * @param {number} height in pixels
 */
export function levelsInSight(scroll, height) {
  const top = Math.floor(scroll / ROW);
  const first = Math.max(0, Math.floor((top - STEP) / STEP) * STEP);
  return { first, levels: Math.ceil(height / ROW / STEP + 2) * STEP };
}

/**
 * The neighbours with the same function as one, because one name is written over all of them.
 * @param {readonly Box[]} row
 * @returns {{start: number, end: number, fn: number}[]}
 */
export function stretches(row) {
  /** @type {{start: number, end: number, fn: number}[]} */
  const found = [];
  for (const { start, end, fn } of row) {
    const last = found[found.length - 1];
    if (last?.fn === fn && last.end === start) last.end = end;
    else found.push({ start, end, fn });
  }
  return found;
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
