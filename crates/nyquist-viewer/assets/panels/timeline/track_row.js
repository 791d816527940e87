// The row of one thread: its label and its canvas.

import { h } from '../../dom.js';
import { formatCounted, formatPercent } from '../../format.js';
import { formatCell } from '../../measure.js';
import { threadDetails, threadName, threadNames } from './tracks.js';

/** @typedef {import('../../api.js').Thread} Thread */
/** @typedef {{element: HTMLElement, canvas: HTMLCanvasElement, thread: Thread, say: (thread: Thread, whole?: number) => void}} TrackRow `say`: sets the amount, and that of all threads */

/**
 * @param {Thread} thread
 * @param {import('../../api.js').Info} info
 * @param {(thread: Thread) => string} details the text that distinguishes it from others, beside its name
 * @returns {TrackRow}
 */
export function createTrackRow(thread, info, details) {
  const canvas = h('canvas', { class: 'graph', 'aria-hidden': 'true' });
  const time = h('span', { class: 'track-time' });
  const share = h('span', { class: 'unseen' });
  const label = h('div', { class: 'track-label', title: threadDetails(thread) },
    h('span', { class: 'track-names' }, h('span', { class: 'track-name' }, ...nameParts(threadName(thread))), h('span', { class: `track-detail${isNeeded(thread, info) ? ' needed' : ''}` }, details(thread))),
    time, share);
  const element = h('div', {
    class: 'track', role: 'option', tabindex: '-1', 'aria-selected': 'false', 'data-thread': thread.thread,
  }, label, h('div', { class: 'graph-area', 'data-area': 'range' }, canvas));
  const say = (/** @type {Thread} */ { weight, markers }, whole = info.summary.weight) => {
    time.textContent = weight > 0 || markers === 0 ? formatCell(weight * info.interval_ns) : formatCounted(markers, 'marker');
    share.textContent = formatPercent(weight, whole);
  };
  say(thread);
  return { element, canvas, thread, say };
}

/** Names of pools of threads differ in their ends, which are shown whatever the space. */
const MAX_END = 5;
/** The length of names that are cut. */
const MIN_CUT = 16;

/** @param {string} name */
function nameParts(name) {
  const letters = [...name];
  if (letters.length < MIN_CUT) return [name];
  return [h('span', { class: 'track-name-begin' }, letters.slice(0, -MAX_END).join('')), h('span', { class: 'track-name-end' }, letters.slice(-MAX_END).join(''))];
}

/**
 * Whether the name alone does not say which thread it is.
 * @param {Thread} thread
 * @param {import('../../api.js').Info} info
 */
function isNeeded(thread, info) {
  return (threadNames(info).get(thread.thread) ?? '') !== threadName(thread);
}
