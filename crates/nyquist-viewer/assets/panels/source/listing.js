// A listing of lines with amounts and heat, for source and for assembly.

import { h } from '../../dom.js';
import { heat } from '../../color.js';
import { formatCell } from '../../measure.js';
import { createVirtualList } from '../../widgets/virtual_list.js';
import { hottestLine, hottestTotal } from './lines.js';

/** @typedef {import('./lines.js').Line} Line */

const SKID = 'Samples name this instruction. The one before it may have taken the time (skid).';

/**
 * @param {string} label
 * @param {(line: Line) => void} choose called when a line is clicked
 */
export function createListing(label, choose) {
  /** @type {Line[]} */
  let lines = [];
  let interval = 1;
  let most = 0;
  /** @type {number | null} */
  let marked = null;
  const list = createVirtualList({
    rowHeight: 18,
    attributes: { class: 'code', role: 'list', tabindex: '0', 'aria-label': label },
    row: (index) => {
      const line = /** @type {Line} */ (lines[index]);
      const isMarked = marked !== null && line.line === marked;
      const numbers = h('span', { class: 'numbers' }, amount(line.own, interval), amount(line.total, interval), h('span', { class: 'line-label' }, line.label));
      const element = h('div', { class: `row code-row${isMarked ? ' marked' : ''}`, role: 'listitem', 'data-index': index }, numbers, h('span', { class: 'code-text' }, line.skid ? h('span', { class: 'skid', title: SKID }, '↑ ') : null, line.text), line.place ? h('span', { class: 'code-place' }, line.place) : null);
      const shade = heat(most > 0 ? Math.max(line.own, line.total * 0.4) / most : 0);
      if (shade > 0) numbers.style.setProperty('--heat', shade.toFixed(3));
      if (shade > 0) element.classList.add('hot');
      return element;
    },
  });
  list.element.addEventListener('click', (event) => {
    const row = event.target instanceof Element ? event.target.closest('[data-index]') : null;
    const line = row instanceof HTMLElement ? lines[Number(row.dataset['index'])] : undefined;
    if (line) choose(line);
  });
  const head = h('div', { class: 'list-head code-head', 'aria-hidden': 'true' }, h('span', { class: 'number' }, 'Self'), h('span', { class: 'number' }, 'Total'), h('span', { class: 'code-title' }, label));
  return {
    element: h('div', { class: 'list-box' }, head, list.element),
    list,
    /**
     * @param {Line[]} newLines
     * @param {number} newInterval
     * @param {boolean} again the same lines with newer amounts
     */
    show(newLines, newInterval, again) {
      lines = newLines;
      interval = newInterval;
      most = hottestTotal(lines);
      if (again) return list.setCount(lines.length);
      marked = null;
      list.element.scrollLeft = 0;
      list.setCount(lines.length);
      const hottest = hottestLine(lines);
      if (hottest >= 0) list.reveal(hottest, 'middle');
    },
    /**
     * Marks the rows that belong to a source line.
     * @param {number | null} line
     * @param {boolean} scroll
     */
    mark(line, scroll) {
      marked = line;
      list.refresh();
      const at = lines.findIndex((one) => line !== null && one.line === line);
      if (scroll && at >= 0) list.reveal(at, 'middle');
    },
  };
}

/**
 * @param {number} value
 * @param {number} interval
 */
function amount(value, interval) {
  return h('span', { class: 'number' }, value > 0 ? formatCell(value * interval) : '');
}
