// The numbers of a graph over time: the number of parts to request, stacked layers, peaks. Pure.

import { isShareOfTime } from '../../measure.js';

/** @typedef {import('../../api.js').Track} Track */
/** @typedef {{category: number, low: Float64Array, high: Float64Array}} Layer heights of each part: 1 is one CPU, or one thing in a second */

/**
 * The number of parts of a graph of a width: at most its pixels, and none shorter than a sampling interval.
 * @param {number} width
 * @param {number} span in ns
 * @param {number} interval in ns
 */
export function partsFor(width, span, interval) {
  const most = Math.min(4096, Math.max(1, Math.floor(width)));
  return Math.max(1, Math.min(most, interval > 0 ? Math.floor(span / interval) : most));
}

/**
 * The categories of a track as stacked layers, in the order of the categories.
 * @param {Track | undefined} track
 * @param {number} unit what has the height 1: the time of a part, or a part of a second
 * @returns {Layer[]}
 */
export function stack(track, unit) {
  const ordered = [...(track?.categories ?? [])].sort((a, b) => a.category - b.category);
  /** @type {Float64Array | null} */
  let below = null;
  return ordered.map(({ category, ns }) => {
    const low = below ?? new Float64Array(ns.length);
    const high = Float64Array.from(ns, (value, i) => (low[i] ?? 0) + value / unit);
    below = high;
    return { category, low, high };
  });
}

/**
 * The highest point of a graph.
 * @param {Layer[]} layers
 */
export function peak(layers) {
  let most = 0;
  for (const value of layers.at(-1)?.high ?? []) most = Math.max(most, value);
  return most;
}

/**
 * The upper end of the scale of a graph of several CPUs, so that its peak is visible.
 * @param {number} highest
 */
export function scaleTop(highest) {
  if (highest <= 0) return 1;
  if (!isShareOfTime()) return highest * 1.04;
  return highest <= 1 ? Math.max(0.1, highest) : highest * 1.04;
}

/**
 * The heights of a part of a graph; null if the part is empty or the whole.
 * @param {Layer[]} whole
 * @param {Layer[] | null} part
 * @returns {Float64Array | null}
 */
export function partOf(whole, part) {
  const high = part?.at(-1)?.high;
  const all = whole.at(-1)?.high;
  if (!high || !all || high.length !== all.length) return null;
  const sum = (/** @type {Float64Array} */ values) => values.reduce((a, b) => a + b, 0);
  return sum(high) < sum(all) * 0.99 ? high : null;
}

/**
 * The height of each category at a part.
 * @param {Layer[]} layers
 * @param {number} part
 * @returns {{category: number, height: number}[]}
 */
export function at(layers, part) {
  return layers.map(({ category, low, high }) => ({ category, height: (high[part] ?? 0) - (low[part] ?? 0) })).filter(({ height }) => height > 0);
}
