// Draws the boxes of a stack chart.

import { fitText, surface, theme } from '../../canvas.js';
import { toX } from '../../axis.js';
import { nameOf } from '../../names.js';
import { boxColor } from '../flame_graph/draw.js';

export const ROW = 16;

/** @typedef {import('./layout.js').Box} Box */

/**
 * @param {HTMLCanvasElement} canvas
 * @param {object} picture
 * @param {Box[][]} picture.rows
 * @param {number} picture.start
 * @param {number} picture.end
 * @param {number} picture.scroll
 * @param {import('../../store.js').State['color']} picture.color
 * @param {string[]} picture.categories
 * @param {((fn: number) => boolean) | null} picture.matches
 */
export function drawChart(canvas, { rows, start, end, scroll, color, categories, matches }) {
  const target = surface(canvas);
  if (!target) return;
  const { ctx, width, height } = target;
  const colors = theme();
  const scale = { start, end, width };
  ctx.font = colors.font;
  ctx.textBaseline = 'middle';
  const last = Math.min(rows.length - 1, Math.floor((scroll + height) / ROW));
  for (let depth = Math.max(0, Math.floor(scroll / ROW)); depth <= last; depth++) {
    const top = depth * ROW - scroll;
    for (const box of rows[depth] ?? []) {
      const x = toX(scale, box.start);
      const wide = toX(scale, box.end) - x;
      const name = nameOf(box.fn);
      const found = matches ? matches(box.fn) : null;
      ctx.fillStyle = found ? colors.match : boxColor(name, color, categories, colors.dark);
      ctx.globalAlpha = found === false ? 0.5 : 1;
      ctx.fillRect(x, top, Math.max(0.5, wide > 3 ? wide - 0.5 : wide), ROW - 1);
      ctx.fillStyle = colors.text;
      if (wide > 24) ctx.fillText(fitText(ctx, name.text, wide - 7, name.short), x + 3, top + ROW / 2);
    }
  }
  ctx.globalAlpha = 1;
}

/**
 * Draws the marks: the box under the pointer, and all boxes of the selected function.
 * @param {HTMLCanvasElement} canvas
 * @param {{rows: Box[][], start: number, end: number, scroll: number}} picture
 * @param {{hovered: Box | null, fn: number | null}} marks
 */
export function drawChartMarks(canvas, { rows, start, end, scroll }, { hovered, fn }) {
  const target = surface(canvas);
  if (!target) return;
  const { ctx, width, height } = target;
  const { text, accent } = theme();
  const mark = (/** @type {Box} */ box, /** @type {string} */ color) => {
    const x = toX({ start, end, width }, box.start);
    const wide = toX({ start, end, width }, box.end) - x;
    if (wide > 2) outline(ctx, x, box.depth * ROW - scroll, wide, color);
  };
  const last = Math.min(rows.length - 1, Math.floor((scroll + height) / ROW));
  for (let depth = Math.max(0, Math.floor(scroll / ROW)); depth <= last; depth++) {
    for (const box of rows[depth] ?? []) if (box.fn === fn) mark(box, accent);
  }
  if (hovered) mark(hovered, text);
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {number} x
 * @param {number} top
 * @param {number} width
 * @param {string} color
 */
function outline(ctx, x, top, width, color) {
  ctx.strokeStyle = color;
  ctx.lineWidth = 1;
  ctx.strokeRect(x + 0.5, top + 0.5, Math.max(1, width - 1.5), ROW - 2);
}
