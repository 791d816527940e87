// One row of the list of functions as an element.

import { h } from '../../dom.js';
import { formatPercent } from '../../format.js';
import { formatCell } from '../../measure.js';
import { nameOf, numberOf } from '../../names.js';

/** @param {number} fn */
export const rowId = (fn) => `function-${fn}`;

/**
 * @param {import('../../api.js').FunctionAmounts} row
 * @param {{weight: number, interval: number, selected: boolean, sort: 'own' | 'total'}} look
 */
export function functionRow({ handle, self: own, total }, { weight, interval, selected, sort }) {
  const fn = numberOf(handle);
  const name = nameOf(fn);
  return h('div', {
    class: `row function-row${selected ? ' selected' : ''}`, role: 'option', id: rowId(fn), 'aria-selected': selected, 'data-fn': fn,
    title: [name.text.slice(0, 1000), name.place ?? ''].filter(Boolean).join('\n'),
  }, h('span', { class: 'number' }, own > 0 ? formatCell(own * interval) : '–'), h('span', { class: 'number share' }, own > 0 ? formatPercent(own, weight) : ''),
  h('span', { class: 'number' }, formatCell(total * interval)), h('span', { class: 'number share' }, formatPercent(total, weight)),
  nameWithBar(fn, (sort === 'own' ? own : total) / weight));
}

/**
 * The name of a function and its lib, on a bar of its share.
 * @param {number | null} fn
 * @param {number} share
 */
export function nameWithBar(fn, share) {
  const name = nameOf(fn);
  const bar = h('span', { class: 'bar', 'aria-hidden': 'true' });
  bar.style.width = `${(Math.min(1, share) * 100).toFixed(2)}%`;
  return h('span', { class: 'function-name' }, bar, h('span', { class: 'name' }, name.short.slice(0, 400)),
    name.lib === null ? null : h('span', { class: 'lib' }, name.lib));
}
