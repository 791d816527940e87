// The list of functions by self or total time, with the callers and callees of the selected one beside it.

import { h } from '../../dom.js';
import { formatCounted } from '../../format.js';
import { numberOf } from '../../names.js';
import { set } from '../../store.js';
import { selectionParams } from '../../url.js';
import { ask } from '../../api.js';
import { createQuestion } from '../../question.js';
import { createStatus } from '../../widgets/status.js';
import { addFoldedNames } from '../../widgets/folded_names.js';
import { byKeyboard, functionKeys, openFunctionMenu } from '../../widgets/function_menu.js';
import { LIST_KEYS, createVirtualList, moveInList } from '../../widgets/virtual_list.js';
import { createChoice } from '../../widgets/choice.js';
import { GROUPS, createGroups } from './groups.js';
import { createCallers } from '../callers/callers.js';
import { PAGE, addPage, emptyPages, missingPage } from './pages.js';
import { functionRow, rowId } from './row.js';

/** @typedef {import('../../store.js').State} State */
/** @typedef {import('../../api.js').FunctionList} FunctionList */
/** @typedef {import('../../api.js').FunctionAmounts} Row */

export class Functions {
  /** @param {import('../../context.js').Context} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.status = createStatus(ctx.store);
    this.question = createQuestion('functions', this.status);
    this.callers = createCallers(ctx);
    /** @type {import('./pages.js').Pages<Row>} */
    this.pages = emptyPages();
    this.weight = 0;
    this.interval = ctx.info.interval_ns;
    /** The page that is being requested, or -1. */
    this.asking = -1;
    /** @type {number | null} */
    this.shownFn = null;
    /** The first function of the list. @type {number | null} */
    this.first = null;
    this.list = createVirtualList({
      rowHeight: 20, attributes: { class: 'functions', role: 'listbox', tabindex: '0', 'aria-label': 'Functions' }, row: (index) => this.rowElement(index),
    });
    this.count = h('span', { class: 'tools-note' });
    this.heads = /** @type {const} */ (['own', 'total']).map((sort) => h('button', {
      type: 'button', class: 'number pair', onclick: () => ctx.store.update(set, { sort }),
    }));
    this.groups = createGroups(ctx, this.status);
    this.choice = createChoice('Rows', GROUPS.map(([group, label]) => [label, () => ctx.store.update(set, { group })]));
    this.element = this.build();
    this.listen();
  }

  build() {
    const head = h('div', { class: 'list-head' }, ...this.heads, this.ctx.offline ? h('span', {}, 'Function') : this.choice.element, this.count);
    return h('section', { class: 'panel split functions-panel' },
      h('div', { class: 'panel-body' }, h('div', { class: 'list-box' }, head, this.list.element, this.groups.element), this.status.element), this.callers.element);
  }

  listen() {
    const { store } = this.ctx;
    const on = (/** @type {'click' | 'dblclick'} */ type, /** @type {(fn: number) => void} */ run) => {
      this.element.addEventListener(type, (event) => {
        const fn = functionUnder(event);
        if (fn !== null) run(fn);
      });
    };
    on('click', (fn) => store.update(set, { fn }));
    addFoldedNames(this.list.element, ({ dataset: { fn } }) => (fn === undefined ? null : Number(fn)));
    on('dblclick', (fn) => store.update(set, { tab: 'source', fn }));
    this.element.addEventListener('contextmenu', (event) => {
      const fn = functionUnder(event) ?? (byKeyboard(event) ? this.current() : null);
      if (fn === null) return;
      event.preventDefault();
      openFunctionMenu(this.ctx, { fn, path: null, inverted: false }, event.clientX, event.clientY);
    });
  }

  /** @param {number} index */
  rowElement(index) {
    const missing = missingPage(this.pages, index);
    if (missing !== null) void this.loadPage(missing);
    const row = this.pages.rows[index];
    const { sort } = this.ctx.store.get();
    return row ? functionRow(row, { weight: this.weight, interval: this.interval, selected: numberOf(row.handle) === this.current(), sort }) : h('div', { class: 'row' }, '…');
  }

  /**
   * @param {State} state
   * @param {number} offset
   */
  paramsOf(state, offset) {
    const params = selectionParams(state);
    params.set('sort', state.sort);
    if (state.search !== '') params.set('search', state.search);
    params.set('limit', String(PAGE));
    if (offset > 0) params.set('offset', String(offset));
    return params;
  }

  /** @param {number} offset */
  async loadPage(offset) {
    if (this.asking === offset) return;
    this.asking = offset;
    const now = this.pages;
    try {
      const answer = /** @type {FunctionList} */ (await ask('functions-page', 'functions', this.paramsOf(this.ctx.store.get(), offset)));
      if (now !== this.pages) return;
      addPage(this.pages, offset, answer.rows, answer.count);
    } catch (error) {
      if (/** @type {Error} */ (error).name === 'AbortError' || now !== this.pages) return;
      this.status.failed(error, () => {
        this.status.clear();
        void this.loadPage(offset);
      });
    }
    this.asking = -1;
    this.list.refresh();
  }

  /** @param {State} state */
  update(state) {
    this.showSort(state.sort);
    const grouped = state.group !== 'function' && !this.ctx.offline;
    this.choice.press(GROUPS.findIndex(([group]) => group === state.group));
    // The list has the rows from before the group was chosen.
    if (!grouped && this.list.element.hidden) this.empty();
    this.list.element.hidden = this.callers.element.hidden = grouped;
    this.groups.element.hidden = !grouped;
    if (grouped) {
      this.question.forget();
      return this.groups.ask(state, this.count);
    }
    this.groups.forget();
    this.question.ask('functions', this.paramsOf(state, 0), (answer, again) => this.show(answer, again));
    if (state.fn !== this.shownFn) {
      this.list.refresh();
      this.list.setActive(state.fn === null ? null : rowId(state.fn));
    }
    this.shownFn = state.fn;
    this.showCallers(state);
  }

  /** Shows no rows until there are new ones. */
  empty() {
    this.pages = emptyPages();
    this.count.textContent = '';
    this.list.setCount(0);
  }

  /** @param {'own' | 'total'} sort */
  showSort(sort) {
    this.heads.forEach((head, i) => {
      const pressed = (i === 0) === (sort === 'own');
      head.setAttribute('aria-pressed', String(pressed));
      head.textContent = `${i === 0 ? 'Self' : 'Total'}${pressed ? ' ▾' : ''}`;
    });
  }

  /**
   * @param {FunctionList} answer
   * @param {boolean} again of a newer profile
   */
  show(answer, again) {
    const { store } = this.ctx;
    this.pages = emptyPages();
    this.asking = -1;
    addPage(this.pages, 0, answer.rows, answer.count);
    this.weight = answer.weight;
    this.interval = answer.interval_ns;
    this.count.textContent = formatCounted(answer.count, 'function');
    if (!again) this.list.element.scrollTop = 0;
    this.list.setCount(answer.count);
    if (answer.weight === 0) return this.status.nothing();
    if (answer.count === 0) return this.status.message('No function has this name.');
    const [first] = answer.rows;
    this.first = first ? numberOf(first.handle) : null;
    this.list.refresh();
    this.showCallers(store.get());
  }

  /** The selected function, otherwise the first one of the list. */
  current() {
    return this.ctx.store.get().fn ?? this.first;
  }

  /** @param {State} state */
  showCallers(state) {
    this.callers.update({ ...state, fn: this.current() });
  }

  /** @param {string} key */
  move(key) {
    this.focus();
    const at = this.pages.rows.findIndex((row) => row && numberOf(row.handle) === this.current());
    const to = moveInList(key, at, this.pages.count, this.list.pageSize()) ?? 0;
    const row = this.pages.rows[to];
    if (row) this.ctx.store.update(set, { fn: numberOf(row.handle) });
    this.list.reveal(to);
  }

  focus() {
    this.list.element.focus({ preventScroll: true });
  }

  /** @returns {import('../../keys.js').Key[]} */
  keys() {
    const { store } = this.ctx;
    return [
      { keys: LIST_KEYS, text: 'Move in the functions', run: (key) => this.move(key) },
      { keys: ['s'], text: 'By self or by total time', run: () => store.update((state) => set(state, { sort: state.sort === 'own' ? 'total' : 'own' })) },
      { keys: ['Enter'], text: 'Show source', run: () => this.current() !== null && store.update(set, { tab: 'source', fn: this.current() }) },
      ...functionKeys(this.ctx, () => {
        const fn = this.current();
        return fn === null ? null : { fn, path: null, inverted: false };
      }),
    ];
  }
}

/**
 * The function of the row under the pointer.
 * @param {Event} event
 */
function functionUnder(event) {
  const row = event.target instanceof Element ? event.target.closest('[data-fn]') : null;
  return row instanceof HTMLElement ? Number(row.dataset['fn']) : null;
}
