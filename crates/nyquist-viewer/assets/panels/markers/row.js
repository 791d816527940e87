// One row of the table of markers as an element.

import { h } from '../../dom.js';
import { clean, formatTime } from '../../format.js';

/** @param {number} index */
export const rowId = (index) => `marker-${index}`;

/**
 * @param {import('../../api.js').MarkerRow} row
 * @param {{index: number, selected: boolean, names: Map<number, string>, zero: number}} look
 */
export function markerRow([thread, start, duration, name, text], { index, selected, names, zero }) {
  const shown = clean(text, 600);
  return h('div', {
    class: `row marker-row${selected ? ' selected' : ''}`, role: 'option', id: rowId(index), 'aria-selected': selected, 'data-index': index, title: shown,
  }, h('span', { class: 'number' }, formatTime(start - zero)), h('span', { class: 'number' }, duration === null ? '–' : formatTime(duration)),
  h('span', { class: 'marker-thread' }, names.get(thread) ?? `thread ${thread}`), h('span', { class: 'marker-kind' }, clean(name, 100)),
  h('span', { class: 'marker-text' }, shown));
}
