// The list of functions by self or total time, with the callers and callees of the selected one beside it.

import { h } from '../../dom.js';
import { formatCounted, formatPercent, formatTime } from '../../format.js';
import { nameOf } from '../../names.js';
import { set } from '../../store.js';
import { selectionParams } from '../../url.js';
import { ask } from '../../api.js';
import { createQuestion } from '../../question.js';
import { createStatus } from '../../widgets/status.js';
import { byKeyboard, functionKeys, openFunctionMenu } from '../../widgets/function_menu.js';
import { LIST_KEYS, createVirtualList, moveInList } from '../../widgets/virtual_list.js';
import { createCallers } from '../callers/callers.js';
import { PAGE, addPage, emptyPages, missingPage } from './pages.js';

/** @typedef {import('../../store.js').State} State */
/** @typedef {import('../../api.js').FunctionList} FunctionList */
/** @typedef {import('../../api.js').FunctionAmounts} Row */

/**
 * @param {import('../../context.js').Context} ctx
 * @returns {import('../../context.js').Panel}
 */
export function createFunctions(ctx) {
  const { store, info } = ctx;
  const status = createStatus(store);
  const question = createQuestion('functions', status);
  const callers = createCallers(ctx);
  /** @type {import('./pages.js').Pages<Row>} */
  let pages = emptyPages();
  let weight = 0;
  let interval = info.interval_ns;
  let asking = -1;
  let shownSelection = '';

  const list = createVirtualList({
    rowHeight: 20,
    attributes: { class: 'functions', role: 'listbox', tabindex: '0', 'aria-label': 'Functions' },
    row: (index) => {
      const missing = missingPage(pages, index);
      if (missing !== null) void loadPage(missing);
      const row = pages.rows[index];
      return row ? functionRow(row, { index, weight, interval, selected: row[0] === store.get().fn, sort: store.get().sort }) : h('div', { class: 'row' }, '…');
    },
  });
  const count = h('span', { class: 'tools-note' });
  const heads = /** @type {const} */ (['own', 'total']).map((sort) => h('button', {
    type: 'button', class: 'number pair', onclick: () => store.update(set, { sort }),
  }, sort === 'own' ? 'Self' : 'Total'));
  const head = h('div', { class: 'list-head' }, ...heads, h('span', {}, 'Function'), count);
  const element = h('section', { class: 'panel split functions-panel' },
    h('div', { class: 'panel-body' }, h('div', { class: 'list-box' }, head, list.element), status.element), callers.element);

  /** @param {State} state */
  const paramsOf = (state, offset = 0) => {
    const params = selectionParams(state);
    params.set('sort', state.sort);
    if (state.search !== '') params.set('search', state.search);
    params.set('limit', String(PAGE));
    if (offset > 0) params.set('offset', String(offset));
    return params;
  };
  /** @param {number} offset */
  const loadPage = async (offset) => {
    if (asking === offset) return;
    asking = offset;
    const now = pages;
    try {
      const answer = /** @type {FunctionList} */ (await ask('functions-page', 'functions', paramsOf(store.get(), offset)));
      if (now !== pages) return;
      addPage(pages, offset, answer.rows, answer.count);
    } catch (error) {
      if (/** @type {Error} */ (error).name === 'AbortError' || now !== pages) return;
      status.failed(error, () => { status.clear(); void loadPage(offset); });
    }
    asking = -1;
    list.refresh();
  };
  /** @param {State} state */
  const update = (state) => {
    heads.forEach((button, i) => {
      const pressed = (i === 0) === (state.sort === 'own');
      button.setAttribute('aria-pressed', String(pressed));
      button.textContent = `${i === 0 ? 'Self' : 'Total'}${pressed ? ' ▾' : ''}`;
    });
    question.ask('functions', paramsOf(state), (/** @type {FunctionList} */ answer) => {
      pages = emptyPages();
      asking = -1;
      addPage(pages, 0, answer.rows, answer.count);
      ({ weight, interval_ns: interval } = answer);
      count.textContent = formatCounted(answer.count, 'function');
      list.element.scrollTop = 0;
      list.setCount(answer.count);
      if (answer.weight === 0) return status.nothing();
      if (answer.count === 0) return status.message('No function has this name.');
      if (store.get().fn === null && answer.rows[0]) store.update(set, { fn: answer.rows[0][0] });
    });
    const selection = String(state.fn);
    if (selection !== shownSelection) {
      list.refresh();
      list.element.setAttribute('aria-activedescendant', `function-${selection}`);
    }
    shownSelection = selection;
    callers.update(state);
  };
  const indexOfSelected = () => pages.rows.findIndex((row) => row?.[0] === store.get().fn);
  const targetOf = () => {
    const { fn } = store.get();
    return fn === null ? null : { fn, path: null, inverted: false };
  };
  const rowUnder = (/** @type {Event} */ event) => {
    const row = event.target instanceof Element ? event.target.closest('[data-fn]') : null;
    return row instanceof HTMLElement ? Number(row.dataset['fn']) : null;
  };
  element.addEventListener('click', (event) => {
    const fn = rowUnder(event);
    if (fn !== null) store.update(set, { fn });
  });
  element.addEventListener('dblclick', (event) => {
    const fn = rowUnder(event);
    if (fn !== null) store.update(set, { tab: 'source', fn });
  });
  element.addEventListener('contextmenu', (event) => {
    const fn = rowUnder(event) ?? (byKeyboard(event) ? store.get().fn : null);
    if (fn === null) return;
    event.preventDefault();
    openFunctionMenu(ctx, { fn, path: null, inverted: false }, event.clientX, event.clientY);
  });
  /** @param {string} key */
  const move = (key) => {
    list.element.focus({ preventScroll: true });
    const to = moveInList(key, indexOfSelected(), pages.count, list.pageSize()) ?? 0;
    const row = pages.rows[to];
    if (row) store.update(set, { fn: row[0] });
    list.reveal(to);
  };
  const source = () => {
    const { fn } = store.get();
    if (fn !== null) store.update(set, { tab: 'source', fn });
  };
  return {
    element,
    update,
    focus: () => list.element.focus({ preventScroll: true }),
    keys: () => [
      { keys: LIST_KEYS, text: 'Move in the functions', run: move },
      { keys: ['s'], text: 'By self or by total time', run: () => store.update((state) => set(state, { sort: state.sort === 'own' ? 'total' : 'own' })) },
      { keys: ['Enter'], text: 'Show source', run: source },
      ...functionKeys(ctx, targetOf),
    ],
  };
}

/**
 * @param {Row} row
 * @param {{index: number, weight: number, interval: number, selected: boolean, sort: 'own' | 'total'}} look
 */
function functionRow([fn, own, total], { index, weight, interval, selected, sort }) {
  const name = nameOf(fn);
  const bar = h('span', { class: 'bar', 'aria-hidden': 'true' });
  bar.style.width = `${Math.min(100, ((sort === 'own' ? own : total) / weight) * 100).toFixed(2)}%`;
  return h('div', {
    class: `row function-row${selected ? ' selected' : ''}`, role: 'option', id: `function-${fn}`, 'aria-selected': selected, 'data-fn': fn, 'data-index': index,
    title: [name.text.slice(0, 1000), name.place ?? ''].filter(Boolean).join('\n'),
  }, h('span', { class: 'number' }, own > 0 ? formatTime(own * interval) : '–'), h('span', { class: 'number share' }, own > 0 ? formatPercent(own, weight) : ''),
  h('span', { class: 'number' }, formatTime(total * interval)), h('span', { class: 'number share' }, formatPercent(total, weight)),
  h('span', { class: 'function-name' }, bar, h('span', { class: 'name' }, name.text.slice(0, 400)), name.lib === null ? null : h('span', { class: 'lib' }, name.lib)));
}
