// The row of one thread: its label and its canvas.

import { h } from '../../dom.js';
import { formatPercent } from '../../format.js';
import { formatAmount } from '../../measure.js';
import { threadDetails, threadName } from './tracks.js';

/** @typedef {import('../../api.js').Thread} Thread */
/** @typedef {{element: HTMLElement, canvas: HTMLCanvasElement, thread: Thread}} TrackRow */

/**
 * @param {Thread} thread
 * @param {import('../../api.js').Info} info
 * @param {(thread: Thread) => string} details what tells it from others, beside its name
 * @returns {TrackRow}
 */
export function createTrackRow(thread, info, details) {
  const canvas = h('canvas', { class: 'graph', 'aria-hidden': 'true' });
  const amount = thread.weight * info.interval_ns;
  const label = h('div', { class: 'track-label', title: threadDetails(thread) },
    h('span', { class: 'track-names' }, h('span', { class: 'track-name' }, threadName(thread)), h('span', { class: 'track-detail' }, details(thread))),
    h('span', { class: 'track-time' }, formatAmount(amount)));
  const element = h('div', {
    class: 'track', role: 'option', tabindex: '-1', 'aria-selected': 'false', 'data-thread': thread.thread,
    'aria-label': `${threadName(thread)}, ${formatAmount(amount)}, ${formatPercent(thread.weight, info.summary.weight)}`,
  }, label, h('div', { class: 'graph-area', 'data-area': 'range' }, canvas));
  return { element, canvas, thread };
}
