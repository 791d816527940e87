// One row of the call tree as an element.

import { h } from '../../dom.js';
import { formatPercent } from '../../format.js';
import { formatCell } from '../../measure.js';
import { nameOf } from '../../names.js';
import { indent } from './model.js';

/** @param {string} path */
export const rowId = (path) => `node-${path.replaceAll('.', '-')}`;

/**
 * @param {import('./model.js').TreeNode} node
 * @param {import('./model.js').Row} row
 * @param {{weight: number, interval: number, expanded: boolean, selected: boolean, found: boolean}} look
 */
export function nodeRow(node, row, { weight, interval, expanded, selected, found }) {
  const name = nameOf(node.fn);
  const twisty = h('span', { class: 'twisty', 'aria-hidden': 'true' }, node.hasChildren ? (expanded ? '▾' : '▸') : '');
  const label = h('span', { class: 'tree-name' }, twisty, h('span', { class: found ? 'found' : '' }, name.short.slice(0, 400)),
    name.lib === null ? null : h('span', { class: 'lib' }, name.lib));
  label.style.paddingLeft = `${indent(row.depth)}px`;
  return h('div', {
    class: `row tree-row${selected ? ' selected' : ''}`, role: 'treeitem', id: rowId(node.path), 'data-path': node.path,
    'aria-level': row.depth + 1, 'aria-posinset': row.index, 'aria-setsize': row.siblings, 'aria-selected': selected,
    'aria-expanded': node.hasChildren ? String(expanded) : null, title: name.text.length > 60 || name.text !== name.short ? name.text.slice(0, 1000) : null,
  }, h('span', { class: 'numbers' },
    h('span', { class: 'number share' }, formatPercent(node.total, weight)),
    h('span', { class: 'number wide' }, formatCell(node.total * interval)),
    h('span', { class: 'number' }, node.own > 0 ? formatCell(node.own * interval) : '–')), label);
}

/**
 * The row that stands for children beyond the limit.
 * @param {import('./model.js').Row} row
 */
export function moreRow(row) {
  const label = h('span', { class: 'tree-name' }, h('span', { class: 'twisty' }), h('span', { class: 'more' }, `${row.more} more…`));
  label.style.paddingLeft = `${indent(row.depth)}px`;
  return h('div', { class: 'row tree-row', role: 'treeitem', 'data-more': row.path, 'aria-level': row.depth + 1 }, h('span', { class: 'numbers' }), label);
}
