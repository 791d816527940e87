// One row of a comparison as an element.

import { h } from '../../dom.js';
import { clean, formatChange, formatPercent } from '../../format.js';
import { formatAmount } from '../../measure.js';
import { relativeOf } from './rows.js';

/** @param {number} index */
export const rowId = (index) => `compare-${index}`;

/**
 * @param {import('./rows.js').Row} content
 * @param {number} index
 * @param {{unit: 'ns' | 'share', selected: boolean}} look
 */
export function compareRow({ title, row }, index, { unit, selected }) {
  if (!row) return h('div', { class: 'row compare-title', role: 'presentation' }, title);
  const { self } = row;
  const value = (/** @type {number} */ amount) => (unit === 'share' ? formatPercent(amount, 1) : formatAmount(amount));
  const change = unit === 'share' ? formatChange(self.change) : `${self.change < 0 ? '−' : '+'}${formatAmount(Math.abs(self.change))}`;
  const kind = self.is_noise ? 'noise' : self.change > 0 ? 'slower' : 'faster';
  const name = clean(row.name);
  return h('div', {
    class: `row compare-row ${kind}${selected ? ' selected' : ''}`, role: 'option', id: rowId(index), 'data-index': index, 'aria-selected': String(selected), title: name.slice(0, 600),
  },
    h('span', { class: 'number change' }, relativeOf(self)), h('span', { class: 'number change' }, change), h('span', { class: 'number' }, value(self.margin)),
    h('span', { class: 'number' }, value(self.before)), h('span', { class: 'number' }, value(self.after)),
    h('span', { class: 'function-name' }, h('span', { class: 'name' }, name.slice(0, 400)), row.lib === null ? null : h('span', { class: 'lib' }, clean(row.lib, 100))));
}
