// The positions and the times of a heat map's cells. Pure.

/** @typedef {import('../../api.js').HeatMap} HeatMap */

/** The number of columns of a map. @param {HeatMap} map */
export const columnsOf = (map) => Math.max(1, Math.ceil(map.cells.length / map.rows));

/** The maximum width of a column, in pixels. */
const WIDEST = 400;

/**
 * @param {HeatMap} map
 * @param {number} width
 */
export const columnWidth = (map, width) => Math.min(WIDEST, width / columnsOf(map));

/**
 * The cell at a position. Columns go from left to right, the offsets of a column from bottom to top.
 * @param {HeatMap} map
 * @param {{width: number, height: number}} size
 * @param {number} x
 * @param {number} y
 */
export function cellAt(map, { width, height }, x, y) {
  const limit = (/** @type {number} */ value, /** @type {number} */ count) => Math.max(0, Math.min(count - 1, Math.floor(value)));
  const column = limit(x / columnWidth(map, width), columnsOf(map));
  return column * map.rows + limit((1 - y / height) * map.rows, map.rows);
}

/**
 * The time from one cell to another, whichever is first.
 * @param {HeatMap} map
 * @param {number} from
 * @param {number} to
 * @returns {[number, number]}
 */
export function rangeOfCells(map, from, to) {
  const start = map.start_ns + Math.min(from, to) * map.row_ns;
  const end = map.start_ns + (Math.max(from, to) + 1) * map.row_ns;
  return [Math.round(start), Math.round(Math.min(end, Math.max(map.end_ns, start + 1)))];
}

/**
 * The value's share of the darkest colour. Small values are visible, too.
 * @param {number} ns
 * @param {number} most
 */
export const heatOf = (ns, most) => (ns <= 0 || most <= 0 ? 0 : 0.12 + 0.88 * Math.sqrt(ns / most));
