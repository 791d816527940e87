// The row of one thread: its label and its canvas.

import { h } from '../../dom.js';
import { formatPercent } from '../../format.js';
import { formatAmount } from '../../measure.js';
import { threadDetails, threadName } from './tracks.js';

/** @typedef {import('../../api.js').Thread} Thread */
/** @typedef {{element: HTMLElement, canvas: HTMLCanvasElement, thread: Thread, say: (thread: Thread) => void}} TrackRow `say`: sets the thread of a newer profile */

/**
 * @param {Thread} thread
 * @param {import('../../api.js').Info} info
 * @param {(thread: Thread) => string} details the text that distinguishes it from others, beside its name
 * @returns {TrackRow}
 */
export function createTrackRow(thread, info, details) {
  const canvas = h('canvas', { class: 'graph', 'aria-hidden': 'true' });
  const time = h('span', { class: 'track-time' });
  const label = h('div', { class: 'track-label', title: threadDetails(thread) },
    h('span', { class: 'track-names' }, h('span', { class: 'track-name' }, threadName(thread)), h('span', { class: 'track-detail' }, details(thread))),
    time);
  const element = h('div', {
    class: 'track', role: 'option', tabindex: '-1', 'aria-selected': 'false', 'data-thread': thread.thread,
  }, label, h('div', { class: 'graph-area', 'data-area': 'range' }, canvas));
  const say = (/** @type {Thread} */ { weight }) => {
    time.textContent = formatAmount(weight * info.interval_ns);
    element.setAttribute('aria-label', `${threadName(thread)}, ${time.textContent}, ${formatPercent(weight, info.summary.weight)}`);
  };
  say(thread);
  return { element, canvas, thread, say };
}
