// Draws the CPU graphs and the time axis.

import { surface, theme } from '../../canvas.js';
import { graphColor } from '../../color.js';
import { ticks } from '../../axis.js';

/** @typedef {import('./graph.js').Layer} Layer */

/**
 * @typedef {object} Graph
 * @property {Layer[]} layers
 * @property {Layer[] | null} ghost the part that the filters leave out, drawn behind
 * @property {Float64Array | null} mark the amount in the selected function
 * @property {number} top the value at the upper edge
 * @property {string[]} colors of the categories, by number
 */

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Graph} graph
 */
export function drawGraph(canvas, { layers, ghost, mark, top, colors }) {
  const target = surface(canvas);
  if (!target) return;
  const { ctx, width, height } = target;
  const { dark, line, text } = theme();
  if (ghost) for (const layer of ghost) if (colors[layer.category] !== 'transparent') fillLayer(ctx, layer, width, height, top, line);
  for (const layer of layers) {
    const color = graphColor(colors[layer.category] ?? 'grey', dark);
    if (color !== 'transparent') fillLayer(ctx, layer, width, height, top, color);
  }
  if (!mark) return;
  ctx.globalAlpha = dark ? 0.34 : 0.42;
  fillLayer(ctx, { category: 0, low: new Float64Array(mark.length), high: mark }, width, height, top, text);
  ctx.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {Layer} layer
 * @param {number} width
 * @param {number} height
 * @param {number} top
 * @param {string} color
 */
function fillLayer(ctx, { low, high }, width, height, top, color) {
  const step = width / high.length;
  const y = (/** @type {number} */ value) => height - Math.min(1, value / top) * (height - 1);
  ctx.beginPath();
  for (let i = 0; i < high.length; i++) {
    const from = /** @type {number} */ (low[i]);
    const to = /** @type {number} */ (high[i]);
    if (to > from) ctx.rect(i * step, y(to), step, Math.max(0.5, y(from) - y(to)));
  }
  ctx.fillStyle = color;
  ctx.fill();
}

/**
 * Draws a counter: an area from 0, or from its least value, to its values.
 * @param {HTMLCanvasElement} canvas
 * @param {import('../../api.js').Counter} counter
 */
export function drawCounter(canvas, { values, color }) {
  const target = surface(canvas);
  if (!target || values.length === 0) return;
  const { ctx, width, height } = target;
  const { dark, dim } = theme();
  const least = Math.min(0, ...values);
  const span = Math.max(...values) - least || 1;
  const step = width / values.length;
  ctx.fillStyle = color === 'ink' ? dim : graphColor(COUNTER_COLORS[color] ?? color, dark);
  ctx.beginPath();
  values.forEach((value, i) => {
    const size = ((value - least) / span) * (height - 3);
    if (size > 0) ctx.rect(i * step, height - size, step + 0.3, size);
  });
  ctx.fill();
}

/** The colours of counters that categories do not have. @type {Record<string, string>} */
const COUNTER_COLORS = { teal: 'lightblue' };

/**
 * @param {HTMLCanvasElement} canvas
 * @param {number} start
 * @param {number} end
 * @param {number} zero
 */
export function drawAxis(canvas, start, end, zero) {
  const target = surface(canvas);
  if (!target) return;
  const { ctx, width, height } = target;
  const { dim, line, font } = theme();
  ctx.font = font;
  ctx.textBaseline = 'middle';
  for (const { x, label } of ticks({ start, end, width }, zero)) {
    ctx.fillStyle = line;
    ctx.fillRect(Math.round(x), 0, 1, height);
    ctx.fillStyle = dim;
    if (x + 8 < width) ctx.fillText(label, Math.round(x) + 4, height / 2 + 0.5);
  }
}
