// Common parts of drawings: a canvas that is sharp on any screen, the colours of the theme, text that fits.

import { shorten } from './format.js';

/**
 * @typedef {object} Surface
 * @property {CanvasRenderingContext2D} ctx scaled, so that one unit is one CSS pixel
 * @property {number} width
 * @property {number} height
 */

/** @typedef {{dark: boolean, text: string, dim: string, back: string, line: string, accent: string, match: string, font: string}} Theme */

const scheme = matchMedia('(prefers-color-scheme: dark)');
/** @type {Theme | null} */
let cached = null;
/** The widths of characters. @type {Map<string, number>} */
const widths = new Map();
/** The most characters whose widths are kept. */
const MAX_WIDTHS = 5000;

/** The colours of the page, from the style sheet. @returns {Theme} */
export function theme() {
  if (cached) return cached;
  const style = getComputedStyle(document.documentElement);
  const get = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  cached = {
    dark: scheme.matches, text: get('--text'), dim: get('--dim'), back: get('--back'), line: get('--line'), accent: get('--accent'),
    match: get('--match'), font: `11.5px ${get('--font')}`,
  };
  return cached;
}

/**
 * Calls back when the system switches between light and dark.
 * @param {() => void} callback
 */
export function onThemeChange(callback) {
  scheme.addEventListener('change', () => {
    cached = null;
    callback();
  });
}

/**
 * Gives a canvas the pixels that its size on this screen needs, and clears it.
 * @param {HTMLCanvasElement} canvas
 * @returns {Surface | null} null while it is not shown
 */
export function surface(canvas) {
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const ctx = canvas.getContext('2d');
  if (!ctx || width === 0 || height === 0) return null;
  const scale = devicePixelRatio || 1;
  const pixels = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = /** @type {[number, number]} */ (pixels);
  ctx.setTransform(scale, 0, 0, scale, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return { ctx, width, height };
}

/**
 * The width of a text in the context's font: the sum of its characters' widths. The browser would cache its
 * measurements of whole texts, which are kilobytes for each of thousands of names.
 * @param {CanvasRenderingContext2D} ctx
 * @param {string} text
 */
function textWidth(ctx, text) {
  let sum = 0;
  for (const character of text) sum += characterWidth(ctx, character);
  return sum;
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {string} character
 */
function characterWidth(ctx, character) {
  const known = widths.get(character);
  if (known !== undefined) return known;
  if (widths.size >= MAX_WIDTHS) widths.clear();
  const { width } = ctx.measureText(character);
  widths.set(character, width);
  return width;
}

/**
 * The longest form of a name that fits, or nothing, because one or two letters are not useful.
 * @param {CanvasRenderingContext2D} ctx
 * @param {string} name
 * @param {number} space in CSS pixels
 * @param {string} [short] the name without arguments, which is shortened if the name does not fit
 */
export function fitText(ctx, name, space, short = name) {
  if (space < 24) return '';
  let max = Math.floor(space / 5.4);
  for (let tries = 0; tries < 4; tries++) {
    const text = name.length <= max ? name : shorten(short, max);
    const width = textWidth(ctx, text);
    if (width <= space) return text.length < 5 && text.endsWith('…') ? '' : text;
    max = Math.min(text.length - 1, Math.floor((text.length * space) / width));
    if (max < 2) return '';
  }
  return '';
}
