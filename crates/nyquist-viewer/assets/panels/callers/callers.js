// The callers and callees of the selected function. Each row leads to that function.

import { button, fill, h } from '../../dom.js';
import { formatPercent } from '../../format.js';
import { formatAmount, formatCell } from '../../measure.js';
import { nameOf, numberOf } from '../../names.js';
import { set } from '../../store.js';
import { selectionParams } from '../../url.js';
import { createQuestion } from '../../question.js';
import { createStatus } from '../../widgets/status.js';
import { openFunctionMenu } from '../../widgets/function_menu.js';
import { nameWithBar } from '../functions/row.js';

/** @typedef {import('../../api.js').Callers} Callers */
/** @typedef {import('../../api.js').Neighbour} Neighbour */

/** The maximum number of rows of each list. */
const MAX_ROWS = 300;

/**
 * @param {import('../../context.js').Context} ctx
 */
export function createCallers(ctx) {
  const { store } = ctx;
  const status = createStatus(store);
  const question = createQuestion('callers', status);
  const content = h('div', { class: 'callers-content' });
  const element = h('aside', { class: 'callers', 'data-panel': 'callers', 'aria-label': 'Callers and callees' }, content, status.element);
  /** @param {Callers} answer */
  const show = (answer) => {
    const { handle, self: own, total } = answer.function;
    const fn = numberOf(handle);
    const name = nameOf(fn);
    const amount = (/** @type {number} */ value) => `${formatAmount(value * answer.interval_ns)} (${formatPercent(value, answer.weight)})`;
    fill(content,
      h('header', { class: 'callers-head' }, h('h2', {}, name.text.slice(0, 500)),
        h('p', { class: 'lib' }, [name.lib, name.place].filter(Boolean).join(' · ')),
        h('p', {}, 'Self ', h('b', {}, amount(own)), ', total ', h('b', {}, amount(total))),
        h('p', { class: 'callers-ways' }, button('Source', () => store.update(set, { tab: 'source', fn })),
          button('Actions', (event) => openFunctionMenu(ctx, { fn, path: null, inverted: false }, event.clientX, event.clientY), { 'aria-haspopup': 'menu' }))),
      ...listOf('Called by', answer.callers, total, answer), ...listOf('Calls', answer.callees, total, answer));
  };
  return {
    element,
    /** @param {import('../../store.js').State} state */
    update(state) {
      if (state.fn === null) {
        fill(content);
        return question.forget();
      }
      const params = selectionParams(state);
      params.set('function', String(state.fn));
      question.ask('callers', params, show);
    },
  };
}

/**
 * @param {string} title
 * @param {Neighbour[]} rows
 * @param {number} whole
 * @param {Callers} answer
 * @returns {Node[]}
 */
function listOf(title, rows, whole, { interval_ns: interval }) {
  const list = h('div', { class: 'callers-list', role: 'list', 'aria-label': title }, ...rows.slice(0, MAX_ROWS).map((row) => neighbourRow(row, whole, interval)));
  const rest = rows.length > MAX_ROWS ? h('p', { class: 'tools-note' }, `${rows.length - MAX_ROWS} more`) : null;
  const empty = rows.length === 0 ? h('p', { class: 'tools-note' }, 'None.') : null;
  return [h('h3', {}, title), list, ...(rest ? [rest] : []), ...(empty ? [empty] : [])];
}

/**
 * @param {Neighbour} row
 * @param {number} whole
 * @param {number} interval
 */
function neighbourRow({ handle, total: weight }, whole, interval) {
  const fn = handle === null ? null : numberOf(handle);
  const content = [
    h('span', { class: 'number' }, formatCell(weight * interval)), h('span', { class: 'number share' }, formatPercent(weight, whole)),
    nameWithBar(fn, weight / whole),
  ];
  if (fn === null) return h('div', { class: 'row neighbour', role: 'listitem' }, ...content);
  return h('div', { role: 'listitem' },
    h('button', { type: 'button', class: 'row neighbour', 'data-fn': fn, title: nameOf(fn).text.slice(0, 1000) }, ...content));
}
