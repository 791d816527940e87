// The comparison with another run: slower and faster functions by self time, and noise.

import { h } from '../../dom.js';
import { clean, formatCounted } from '../../format.js';
import { formatAmount, measureName } from '../../measure.js';
import { set } from '../../store.js';
import { selectionParams } from '../../url.js';
import { createQuestion } from '../../question.js';
import { createChoice } from '../../widgets/choice.js';
import { openFunctionMenu } from '../../widgets/function_menu.js';
import { createStatus } from '../../widgets/status.js';
import { LIST_KEYS, createVirtualList, moveInList } from '../../widgets/virtual_list.js';
import { compareRow, rowId } from './row.js';
import { rowsOf, summaryOf } from './rows.js';

/** @typedef {import('../../store.js').State} State */

const LIMIT = 1000;

/**
 * The names of the files of both runs.
 * @param {import('../../api.js').Info} info
 * @returns {[string, string]}
 */
function namesOf({ file, before }) {
  return [before?.file ? `in ${clean(before.file, 60)}` : 'before', file ? `in ${clean(file, 60)}` : 'after'];
}

/**
 * @param {import('../../context.js').Context} ctx
 * @returns {import('../../context.js').Panel}
 */
export function createCompare(ctx) {
  const { store } = ctx;
  const status = createStatus(store);
  const question = createQuestion('compare', status);
  /** @type {import('./rows.js').Row[]} */
  let rows = [];
  let selected = -1;
  const list = createVirtualList({
    rowHeight: 20, attributes: { class: 'compare', role: 'listbox', tabindex: '0', 'aria-label': 'Functions by what has changed' },
    row: (index) => compareRow(/** @type {import('./rows.js').Row} */ (rows[index]), index, { unit: store.get().unit, selected: index === selected }),
  });
  const unit = createChoice('What is compared', [
    ['Times', () => store.update(set, { unit: 'ns' })], ['Shares of the whole', () => store.update(set, { unit: 'share' })],
  ]);
  const summary = h('span', { class: 'compare-summary' });
  const graph = h('button', { type: 'button', onclick: () => store.update(set, { tab: 'flame-graph', color: 'change' }) }, 'Flame graph by change');
  const head = h('div', { class: 'list-head', 'aria-hidden': 'true' }, ...['Change', 'by', '±', 'Before', 'After'].map((text) => h('span', { class: 'number' }, text)), h('span', {}, 'Function'));
  const element = h('section', { class: 'panel compare-panel' }, h('div', { class: 'panel-tools' }, unit.element, graph, summary),
    h('div', { class: 'panel-body' }, h('div', { class: 'list-box' }, head, list.element), status.element));
  /** @param {number} index */
  const select = (index) => {
    selected = index;
    const fn = rows[index]?.row?.function ?? null;
    if (fn !== null) store.update(set, { fn });
    list.refresh();
    list.reveal(index);
    list.setActive(rowId(index));
  };
  const under = (/** @type {Event} */ event) => {
    const found = event.target instanceof Element ? event.target.closest('[data-index]') : null;
    return found instanceof HTMLElement ? Number(found.dataset['index']) : null;
  };
  list.element.addEventListener('click', (event) => {
    const index = under(event);
    if (index !== null) select(index);
  });
  list.element.addEventListener('contextmenu', (event) => {
    const fn = rows[under(event) ?? selected]?.row?.function ?? null;
    if (fn === null) return;
    event.preventDefault();
    openFunctionMenu(ctx, { fn, path: null, inverted: false }, event.clientX, event.clientY);
  });
  return {
    element,
    focus: () => list.element.focus({ preventScroll: true }),
    keys: () => [{
      keys: LIST_KEYS, text: 'Move in the rows', run: (key) => {
        const to = moveInList(key, selected, rows.length, list.pageSize());
        if (to !== null) select(to);
      },
    }],
    /** @param {State} state */
    update(state) {
      unit.press(state.unit === 'ns' ? 0 : 1);
      const params = selectionParams(state);
      params.set('unit', state.unit);
      params.set('limit', String(LIMIT));
      question.ask('diff', params, (/** @type {import('../../api.js').Diff} */ answer) => {
        rows = rowsOf(answer);
        selected = -1;
        summary.textContent = `${summaryOf(answer, measureName(), formatAmount, namesOf(ctx.info))}; ${formatCounted(answer.noise_count, 'function')} within noise`;
        list.setCount(rows.length);
        if (rows.length === 0) status.message('Neither run has samples in this selection.');
      });
    },
  };
}
