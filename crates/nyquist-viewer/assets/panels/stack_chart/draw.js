// Draws the boxes of a stack chart.

import { fitText, surface, theme } from '../../canvas.js';
import { toX } from '../../axis.js';
import { nameOf } from '../../names.js';
import { boxColor } from '../flame_graph/draw.js';
import { ROW, stretches } from './layout.js';

/** @typedef {import('./layout.js').Box} Box */

/**
 * @typedef {object} Picture
 * @property {Box[][]} rows
 * @property {Box[][]} joined boxes that are too narrow to be drawn one by one, by pixel
 * @property {number} start
 * @property {number} end
 * @property {number} scroll
 * @property {import('../../store.js').State['color']} color
 * @property {string[]} categories
 * @property {((fn: number) => boolean) | null} matches
 */

/** How much of the colour a pixel has whose boxes cover next to nothing of its time. */
const FAINTEST = 0.2;

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Picture} picture
 */
export function drawChart(canvas, picture) {
  const target = surface(canvas);
  if (!target) return;
  const { ctx, width, height } = target;
  const { start, end, scroll } = picture;
  const colors = theme();
  const scale = { start, end, width };
  ctx.font = colors.font;
  ctx.textBaseline = 'middle';
  const last = Math.min(Math.max(picture.rows.length, picture.joined.length) - 1, Math.floor((scroll + height) / ROW));
  for (let depth = Math.max(0, Math.floor(scroll / ROW)); depth <= last; depth++) {
    const top = depth * ROW - scroll;
    drawJoined(ctx, picture.joined[depth] ?? [], scale, top, picture, colors);
    for (const box of picture.rows[depth] ?? []) drawBox(ctx, box, scale, top, picture, colors);
  }
  ctx.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {Box} box
 * @param {import('../../axis.js').Scale} scale
 * @param {number} top
 * @param {Picture} picture
 * @param {import('../../canvas.js').Theme} colors
 */
function drawBox(ctx, box, scale, top, picture, colors) {
  const x = toX(scale, box.start);
  const wide = toX(scale, box.end) - x;
  ctx.globalAlpha = paint(ctx, box.fn, picture, colors);
  ctx.fillRect(x, top, Math.max(0.5, wide > 3 ? wide - 0.5 : wide), ROW - 1);
  drawName(ctx, box.fn, x, wide, top, colors);
}

/**
 * Draws what narrow boxes show together: whole pixels, paler where they cover less of the time.
 * @param {CanvasRenderingContext2D} ctx
 * @param {Box[]} row
 * @param {import('../../axis.js').Scale} scale
 * @param {number} top
 * @param {Picture} picture
 * @param {import('../../canvas.js').Theme} colors
 */
function drawJoined(ctx, row, scale, top, picture, colors) {
  for (const box of row) {
    const x = Math.round(toX(scale, box.start));
    const opacity = paint(ctx, box.fn, picture, colors);
    ctx.globalAlpha = opacity * (FAINTEST + ((1 - FAINTEST) * (box.eighths ?? 8)) / 8);
    ctx.fillRect(x, top, Math.max(1, Math.round(toX(scale, box.end)) - x), ROW - 1);
  }
  ctx.globalAlpha = 1;
  for (const { fn, start, end } of stretches(row)) {
    const x = toX(scale, start);
    drawName(ctx, fn, x, toX(scale, end) - x, top, colors);
  }
}

/**
 * Sets the colour of a function's boxes, and returns their opacity.
 * @param {CanvasRenderingContext2D} ctx
 * @param {number} fn
 * @param {Picture} picture
 * @param {import('../../canvas.js').Theme} colors
 */
function paint(ctx, fn, { color, categories, matches }, colors) {
  const found = matches ? matches(fn) : null;
  ctx.fillStyle = found ? colors.match : boxColor(nameOf(fn), color, categories, colors.dark);
  return found === false ? 0.5 : 1;
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {number} fn
 * @param {number} x
 * @param {number} wide
 * @param {number} top
 * @param {import('../../canvas.js').Theme} colors
 */
function drawName(ctx, fn, x, wide, top, colors) {
  if (wide <= 24) return;
  const name = nameOf(fn);
  ctx.fillStyle = colors.text;
  ctx.fillText(fitText(ctx, name.text, wide - 7, name.short), x + 3, top + ROW / 2);
}

/**
 * Draws the marks: the box under the pointer, and all boxes of the selected function.
 * @param {HTMLCanvasElement} canvas
 * @param {Pick<Picture, 'rows' | 'joined' | 'start' | 'end' | 'scroll'>} picture
 * @param {{hovered: Box | null, fn: number | null}} marks
 */
export function drawChartMarks(canvas, { rows, joined, start, end, scroll }, { hovered, fn }) {
  const target = surface(canvas);
  if (!target) return;
  const { ctx, width, height } = target;
  const { text, accent } = theme();
  const mark = (/** @type {{start: number, end: number}} */ box, /** @type {number} */ depth, /** @type {string} */ color) => {
    const x = toX({ start, end, width }, box.start);
    const wide = toX({ start, end, width }, box.end) - x;
    if (wide > 2) outline(ctx, x, depth * ROW - scroll, wide, color);
  };
  const last = Math.min(Math.max(rows.length, joined.length) - 1, Math.floor((scroll + height) / ROW));
  for (let depth = Math.max(0, Math.floor(scroll / ROW)); fn !== null && depth <= last; depth++) {
    for (const box of [...(rows[depth] ?? []), ...stretches(joined[depth] ?? [])]) if (box.fn === fn) mark(box, depth, accent);
  }
  if (hovered) mark(hovered, hovered.depth, text);
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
