// Zooms and moves the range of time: the wheel with Ctrl, or with Shift, and the keys W, A, S and D.

import { rangeOf, setRange } from '../store.js';

/** @typedef {import('../store.js').Range} Range */

/** The shortest range, in ns. */
const MIN_LENGTH = 1000;
/** The pause between two steps of the wheel, because each step sends requests. */
const STEP_MS = 60;

/**
 * A range that is `factor` times as long, in which a time stays in its place.
 * @param {Range} range
 * @param {Range} whole
 * @param {number} at
 * @param {number} factor
 * @returns {Range}
 */
export function zoomed([start, end], whole, at, factor) {
  const length = Math.max(MIN_LENGTH, Math.min((end - start) * factor, whole[1] - whole[0]));
  const from = at - ((at - start) / Math.max(1, end - start)) * length;
  return within([from, from + length], whole);
}

/**
 * A range that is moved by a part of its length.
 * @param {Range} range
 * @param {Range} whole
 * @param {number} part
 * @returns {Range}
 */
export const moved = ([start, end], whole, part) => within([start + (end - start) * part, end + (end - start) * part], whole);

/**
 * @param {Range} range
 * @param {Range} whole
 * @returns {Range}
 */
function within([start, end], [first, last]) {
  const length = Math.min(end - start, last - first);
  const from = Math.max(first, Math.min(start, last - length));
  return [Math.floor(from), Math.ceil(from + length)];
}

/**
 * @param {HTMLElement} element
 * @param {import('../context.js').Context} ctx
 * @param {(target: Element) => HTMLElement | null} area the box whose width is the shown range
 */
export function listenForZoom(element, { store, info, offline }, area) {
  if (offline) return;
  let last = -Infinity;
  const whole = () => /** @type {Range} */ ([info.start_ns, info.end_ns]);
  const shown = () => rangeOf(store.get()) ?? whole();
  const show = (/** @type {Range} */ range) => store.update(setRange, range[0] <= info.start_ns && range[1] >= info.end_ns ? null : range);
  element.addEventListener('wheel', (event) => {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
    const zooms = event.ctrlKey || event.metaKey;
    const box = event.target instanceof Element ? area(event.target) : null;
    if (!box || (!zooms && sideways === 0)) return;
    event.preventDefault();
    if (event.timeStamp - last < STEP_MS) return;
    last = event.timeStamp;
    const { left, width } = box.getBoundingClientRect();
    const [start, end] = shown();
    const at = start + ((end - start) * Math.max(0, Math.min(width, event.clientX - left))) / Math.max(1, width);
    show(zooms ? zoomed([start, end], whole(), at, event.deltaY < 0 ? 0.7 : 1 / 0.7) : moved([start, end], whole(), sideways > 0 ? 0.15 : -0.15));
  }, { passive: false });
  element.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement) return;
    const range = shown();
    const middle = (range[0] + range[1]) / 2;
    /** @type {Record<string, () => Range>} */
    const steps = {
      w: () => zoomed(range, whole(), middle, 0.7), s: () => zoomed(range, whole(), middle, 1 / 0.7),
      a: () => moved(range, whole(), -0.15), d: () => moved(range, whole(), 0.15),
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    show(step());
  });
}
