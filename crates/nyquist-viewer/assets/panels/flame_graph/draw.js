// Draws the boxes of a flame graph.

import { fitText, surface, theme } from '../../canvas.js';
import { categoryBox, changeBox, groupBox } from '../../color.js';
import { nameOf } from '../../names.js';
import { changeOf } from './change.js';
import { ROW, rowTop, rowsInView } from './view.js';

/** @typedef {import('./layout.js').Box} Box */
/** @typedef {import('../../names.js').Name} Name */

/**
 * @typedef {object} Picture
 * @property {import('./layout.js').Layout} layout
 * @property {number[]} parents functions above the root
 * @property {import('./view.js').View} view
 * @property {import('../../store.js').State['color']} color
 * @property {import('../../store.js').State['unit']} unit by what changes are coloured
 * @property {string[]} categories their colours by number
 * @property {((fn: number) => boolean) | null} matches whether the search matches a function, if there is a
 * search
 */

/** The colours of names so far, in one colour mode, because thousands of boxes are drawn at a time. @type {WeakMap<Name, string>} */
let known = new WeakMap();
let knownFor = '';

/**
 * The colour of a function's boxes.
 * @param {Name} name
 * @param {import('../../store.js').State['color']} color
 * @param {string[]} categories
 * @param {boolean} dark
 * @returns {string}
 */
export function boxColor(name, color, categories, dark) {
  const way = `${color} ${dark}`;
  if (way !== knownFor) known = new WeakMap();
  knownFor = way;
  const found = known.get(name) ?? freshColor(name, color, categories, dark);
  known.set(name, found);
  return found;
}

/**
 * @param {Name} name
 * @param {import('../../store.js').State['color']} color
 * @param {string[]} categories
 * @param {boolean} dark
 */
function freshColor(name, color, categories, dark) {
  if (color === 'category' && name.category !== null) return categoryBox(categories[name.category] ?? 'grey', dark, name.shade);
  if (color === 'category') return groupBox(null, dark, name.shade);
  return groupBox(color === 'module' ? name.module : name.lib, dark, name.shade);
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Picture} picture
 */
export function drawFlame(canvas, picture) {
  const target = surface(canvas);
  if (target) paintFlame(target, picture);
}

/**
 * @param {import('../../canvas.js').Surface} target
 * @param {Picture} picture
 */
export function paintFlame({ ctx, width }, picture) {
  const { view, layout, parents } = picture;
  const colors = theme();
  ctx.font = colors.font;
  ctx.textBaseline = 'middle';
  const scale = layout.weight > 0 ? width / layout.weight : 0;
  const [first, last] = rowsInView(view);
  for (let row = first; row <= last; row++) {
    const top = rowTop(view, row);
    const parent = parents[row];
    if (parent !== undefined) drawParent(ctx, parent, width, top, colors);
    else for (const box of layout.rows[row - parents.length] ?? []) drawBox(ctx, box, scale, top, picture, colors);
  }
}

/**
 * Draws the marks on a separate canvas, so that hovering over a box does not redraw all boxes.
 * @param {HTMLCanvasElement} canvas
 * @param {Pick<Picture, 'layout' | 'parents' | 'view'>} picture
 * @param {{hovered: Box | null, selected: Box | null}} marks
 */
export function drawMarks(canvas, picture, { hovered, selected }) {
  const target = surface(canvas);
  if (!target || picture.layout.weight <= 0) return;
  const { accent, text } = theme();
  const scale = target.width / picture.layout.weight;
  outline(target.ctx, selected, picture, scale, accent, 2);
  outline(target.ctx, hovered, picture, scale, text, 1);
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {Box} box
 * @param {number} scale
 * @param {number} top
 * @param {Picture} picture
 * @param {import('../../canvas.js').Theme} colors
 */
function drawBox(ctx, box, scale, top, picture, colors) {
  const x = box.start * scale;
  const width = box.width * scale;
  const name = nameOf(box.fn);
  const found = picture.matches ? picture.matches(box.fn) : null;
  const change = picture.color === 'change' ? changeOf(box, picture.layout, picture.unit) : null;
  const plain = change === null ? boxColor(name, picture.color, picture.categories, colors.dark) : changeBox(change, colors.dark);
  ctx.fillStyle = found ? colors.match : plain;
  ctx.globalAlpha = found === false ? 0.5 : 1;
  ctx.fillRect(x, top, Math.max(found ? 1 : 0.4, width > 3 ? width - 1 : width * 0.85), ROW - 1);
  if (width > 20) {
    ctx.fillStyle = colors.text;
    ctx.globalAlpha = found === false ? 0.75 : 1;
    const text = fitText(ctx, name.text, width - 9, name.short);
    if (text !== '') ctx.fillText(text, Math.max(x, 0) + 4, top + ROW / 2);
  }
  ctx.globalAlpha = 1;
}

/**
 * A caller of the zoomed box: over the full width, pale.
 * @param {CanvasRenderingContext2D} ctx
 * @param {number} fn
 * @param {number} width
 * @param {number} top
 * @param {import('../../canvas.js').Theme} colors
 */
function drawParent(ctx, fn, width, top, colors) {
  ctx.fillStyle = colors.line;
  ctx.globalAlpha = 0.75;
  ctx.fillRect(0, top, width - 1, ROW - 1);
  ctx.globalAlpha = 1;
  ctx.fillStyle = colors.dim;
  ctx.fillText(fitText(ctx, nameOf(fn).text, width - 9, nameOf(fn).short), 4, top + ROW / 2);
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {Box | null} box
 * @param {Pick<Picture, 'parents' | 'view'>} picture
 * @param {number} scale
 * @param {string} color
 * @param {number} line
 */
function outline(ctx, box, { view, parents }, scale, color, line) {
  if (!box) return;
  ctx.strokeStyle = color;
  ctx.lineWidth = line;
  const inset = line / 2;
  const width = Math.max(line, box.width * scale - 1 - line);
  ctx.strokeRect(box.start * scale + inset, rowTop(view, parents.length + box.depth) + inset, width, ROW - 1 - line);
}
