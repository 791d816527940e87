// The places and the times of the cells of a heat map. Pure.

/** @typedef {import('../../api.js').HeatMap} HeatMap */

/** How many columns a map has. @param {HeatMap} map */
export const columnsOf = (map) => Math.max(1, Math.ceil(map.cells.length / map.rows));

/** The widest column, in pixels: a map of a few seconds is no field of a few blocks. */
const WIDEST = 32;

/**
 * @param {HeatMap} map
 * @param {number} width
 */
export const columnWidth = (map, width) => Math.min(WIDEST, width / columnsOf(map));

/**
 * The cell at a place: columns go from left to right, the offsets of a column from the bottom to the top.
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
 * The share of the darkest colour that a value has: small ones are seen, too.
 * @param {number} ns
 * @param {number} most
 */
export const heatOf = (ns, most) => (ns <= 0 || most <= 0 ? 0 : 0.12 + 0.88 * Math.sqrt(ns / most));
