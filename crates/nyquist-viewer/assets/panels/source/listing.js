// A listing of lines with amounts and heat, for source and for assembly.

import { h } from '../../dom.js';
import { heat } from '../../color.js';
import { formatCell } from '../../measure.js';
import { createVirtualList } from '../../widgets/virtual_list.js';
import { hottestLine, hottestTotal } from './lines.js';

/** @typedef {import('./lines.js').Line} Line */
/** @typedef {import('./syntax.js').Coloring} Coloring */

const SKID = 'Samples name this instruction. The one before it may have taken the time (skid).';

/** The page waits for colours for this long; those of a line far down come later. */
const COLORING_MS = 8;

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
  /** @type {Coloring | null} */
  let coloring = null;
  /** The line that is coloured in the background. */
  let awaited = -1;
  const colorOn = () => {
    if (awaited < 0) return;
    if (coloring && !coloring.reach(awaited, COLORING_MS)) return void setTimeout(colorOn);
    awaited = -1;
    list.refresh();
  };
  /** The elements of a line's text. @param {number} index @param {string} text */
  const textOf = (index, text) => {
    if (!coloring) return [text];
    if (!coloring.partsOf(index) && (awaited >= 0 || !coloring.reach(index, COLORING_MS))) {
      if (awaited < 0) setTimeout(colorOn);
      awaited = Math.max(awaited, index);
    }
    return coloring.partsOf(index)?.map(([part, kind]) => (kind ? h('span', { class: `syntax-${kind}` }, part) : part)) ?? [text];
  };
  const list = createVirtualList({
    rowHeight: 18,
    attributes: { class: 'code', role: 'list', tabindex: '0', 'aria-label': label },
    row: (index) => {
      const line = /** @type {Line} */ (lines[index]);
      const isMarked = marked !== null && line.line === marked;
      const numbers = h('span', { class: 'numbers' }, amount(line.own, interval), amount(line.total, interval), h('span', { class: 'line-label' }, line.label));
      const element = h('div', { class: `row code-row${isMarked ? ' marked' : ''}`, role: 'listitem', 'data-index': index }, numbers, h('span', { class: 'code-text' }, line.skid ? h('span', { class: 'skid', title: SKID }, '↑ ') : null, ...textOf(index, line.text)), line.place ? h('span', { class: 'code-place' }, line.place) : null);
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
     * @param {Coloring | null} newColoring
     */
    show(newLines, newInterval, again, newColoring) {
      lines = newLines;
      coloring = newColoring;
      awaited = -1;
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
