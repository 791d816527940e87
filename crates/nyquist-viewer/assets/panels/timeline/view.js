// The elements of the timeline.

import { button, h } from '../../dom.js';
import { formatRate } from '../../measure.js';

const hidden = { 'aria-hidden': 'true' };

/**
 * A row of the timeline: a label, and a part as wide as the time axis.
 * @param {string} kind
 * @param {'whole' | 'range'} area the shown time
 * @param {Node[]} label
 * @param {Node[]} content
 */
function row(kind, area, label, content) {
  return h('div', { class: `track ${kind}` }, h('div', { class: 'overview-label' }, ...label), h('div', { class: 'graph-area', 'data-area': area }, ...content));
}

export function createView() {
  const overview = h('canvas', { class: 'graph', role: 'img', 'aria-label': 'All threads over time' });
  const wholeAxis = h('canvas', { class: 'axis', ...hidden });
  const rangeAxis = h('canvas', { class: 'axis', ...hidden });
  const brush = h('div', { class: 'brush', hidden: true });
  const trackBrush = h('div', { class: 'brush', hidden: true });
  const selected = h('div', { class: 'brush brush-selected', hidden: true });
  const peak = h('span', { class: 'track-time' });
  const all = button('All threads', () => undefined, { class: 'all-threads', 'aria-pressed': 'true' });
  const search = h('input', { type: 'search', class: 'track-search', placeholder: 'Find a thread', 'aria-label': 'Find a thread by name' });
  const list = h('div', { class: 'track-list', role: 'listbox', tabindex: '0', 'aria-label': 'Threads', 'aria-multiselectable': 'true' });
  const more = h('div', { class: 'track-more' });
  const counters = h('div');
  const top = h('div', { class: 'timeline-top' }, row('overview', 'whole', [all, peak], [overview, selected, brush]),
    row('axis-row whole-axis', 'whole', [], [wholeAxis]), row('axis-row', 'range', [search], [rangeAxis]));
  const brushArea = h('div', { class: 'tracks-brush-area', 'data-area': 'range' }, trackBrush);
  const tracks = h('div', { class: 'tracks' }, h('div', { class: 'tracks-inner' }, list, more, counters, brushArea));
  return { top, tracks, overview, wholeAxis, rangeAxis, brushes: [brush, trackBrush], selected, peak, all, search, list, more, counters };
}

/**
 * Places the mark of a range on a scale.
 * @param {HTMLElement} brush
 * @param {import('../../store.js').Range | null} range
 * @param {{start: number, end: number}} scale
 */
export function placeBrush(brush, range, { start, end }) {
  brush.hidden = range === null;
  if (!range) return;
  const share = (/** @type {number} */ time) => Math.max(0, Math.min(1, (time - start) / (end - start))) * 100;
  brush.style.left = `${share(range[0])}%`;
  brush.style.width = `${share(range[1]) - share(range[0])}%`;
}

/** @param {number} highest in a second */
export const rateText = (highest) => (highest > 0 ? `peak ${formatRate(highest)}` : '');

/**
 * @param {number} highest
 * @param {string} noun
 */
export function peakText(highest, noun) {
  if (highest <= 0) return '';
  const text = highest.toFixed(highest < 9.95 ? 1 : 0);
  return `peak ${text} ${noun}${text === '1.0' ? '' : 's'}`;
}
