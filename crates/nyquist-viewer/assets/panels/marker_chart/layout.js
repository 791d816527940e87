// The positions of a marker chart's rows and bars. Pure.

/** @typedef {import('../../api.js').MarkerChartRow} ChartRow */
/** @typedef {{row: ChartRow, top: number, height: number}} PlacedRow */

export const LANE = 16;
/** The height of the line with a row's name, above its bars. */
export const LABEL = 15;
const GAP = 4;

/**
 * The rows, one below the other.
 * @param {ChartRow[]} rows
 * @returns {PlacedRow[]}
 */
export function place(rows) {
  let top = 0;
  return rows.map((row) => {
    const placed = { row, top, height: LABEL + row.lanes * LANE + GAP };
    top += placed.height;
    return placed;
  });
}

/** @param {PlacedRow[]} placed */
export const heightOf = (placed) => placed.reduce((sum, { height }) => sum + height, 0);

/**
 * The part of a bar that is in the chart: where a label begins, and its space. A bar may begin before the chart and end behind it.
 * @param {number} x
 * @param {number} wide
 * @param {number} width of the chart
 */
export function visiblePart(x, wide, width) {
  const start = Math.max(x, 0);
  return { start, space: Math.min(x + wide, width) - start };
}

/**
 * The row and the bar at a position. A bar counts as at least three pixels wide.
 * @param {PlacedRow[]} placed
 * @param {number} y
 * @param {number} time
 * @param {number} pixel the time of a pixel
 * @returns {{row: ChartRow, bar: import('../../api.js').MarkerBar | null} | null}
 */
export function at(placed, y, time, pixel) {
  const found = placed.find(({ top, height }) => y >= top && y < top + height);
  if (!found) return null;
  const lane = Math.floor((y - found.top - LABEL) / LANE);
  const bars = found.row.bars.filter(([of, start, end]) => of === lane && start <= time + pixel && Math.max(end, start + 3 * pixel) >= time - pixel);
  return { row: found.row, bar: bars.at(-1) ?? null };
}
