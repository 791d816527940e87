// The call tree: loads children when they are opened, and moves through the rows by pointer and keys.

import { h } from '../../dom.js';
import { countsTime } from '../../measure.js';
import { createHighlight } from '../../pattern.js';
import { set } from '../../store.js';
import { selectionParams } from '../../url.js';
import { ask } from '../../api.js';
import { createQuestion } from '../../question.js';
import { addFoldedNames } from '../../widgets/folded_names.js';
import { createStatus } from '../../widgets/status.js';
import { createChoice } from '../../widgets/choice.js';
import { byKeyboard, functionKeys, openFunctionMenu } from '../../widgets/function_menu.js';
import { LIST_KEYS, createVirtualList, moveInList } from '../../widgets/virtual_list.js';
import { addRows, emptyModel, hottest, indent, parentPath, rowsOf } from './model.js';
import { moreRow, nodeRow, rowId } from './row.js';

/** @typedef {import('../../store.js').State} State */
/** @typedef {import('../../api.js').Tree} Tree */

const LIMIT = 100;
/** The maximum number of nodes that `*` opens, and that it requests at a time. */
const EXPAND_ALL = 120;
const AT_A_TIME = 6;

export class CallTree {
  /** @param {import('../../context.js').Context} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.status = createStatus(ctx.store);
    this.question = createQuestion('call-tree', this.status);
    this.highlight = createHighlight();
    this.model = emptyModel();
    /** @type {import('./model.js').Row[]} */
    this.rows = [];
    this.selected = '';
    this.weight = 0;
    this.interval = ctx.info.interval_ns;
    /** The stack that was clicked in the timeline and is selected here. @type {number[] | null} */
    this.shownStack = null;
    /** Counts the trees, so that responses for an older one are ignored. */
    this.generation = 0;
    this.list = createVirtualList({
      rowHeight: 20, attributes: { class: 'tree', role: 'tree', tabindex: '0', 'aria-label': 'Call tree' }, row: (index) => this.rowElement(index),
    });
    this.order = createChoice('Order', [
      ['Callers first', () => ctx.store.update(set, { inverted: false })], ['Inverted', () => ctx.store.update(set, { inverted: true })],
    ]);
    this.element = this.build();
    this.list.element.addEventListener('click', (event) => this.onClick(event));
    this.list.element.addEventListener('dblclick', (event) => this.onDoubleClick(event));
    addFoldedNames(this.list.element, ({ dataset: { path } }) => (path ? this.model.nodes.get(path)?.fn ?? null : null));
    this.list.element.addEventListener('contextmenu', (event) => this.onContextMenu(event));
  }

  build() {
    const head = h('div', { class: 'list-head tree-head', 'aria-hidden': 'true' }, h('span', { class: 'number share' }, 'Total'),
      h('span', { class: 'number wide' }, countsTime() ? 'Time' : 'Amount'), h('span', { class: 'number' }, 'Self'), h('span', { class: 'tree-head-name' }, 'Function'));
    return h('section', { class: 'panel call-tree' }, h('div', { class: 'panel-tools' }, this.order.element),
      h('div', { class: 'panel-body' }, h('div', { class: 'list-box' }, head, this.list.element), this.status.element));
  }

  /** @param {number} index */
  rowElement(index) {
    const row = /** @type {import('./model.js').Row} */ (this.rows[index]);
    const node = this.model.nodes.get(row.path);
    if (row.more > 0 || !node) return moreRow(row);
    return nodeRow(node, row, {
      weight: this.weight, interval: this.interval, expanded: this.model.expanded.has(row.path), selected: row.path === this.selected,
      found: this.highlight.matches()?.(node.fn) ?? false,
    });
  }

  /** @param {State} state */
  update(state) {
    this.order.press(state.inverted ? 1 : 0);
    if (this.highlight.search(state.search)) this.list.refresh();
    const params = this.paramsOf('', state, LIMIT);
    if (!state.inverted) params.set('expand', '1');
    this.question.ask('tree', params, (answer, again) => void (again ? this.refresh(answer) : this.show(answer)));
    void this.showStack();
  }

  /** @param {Tree} answer */
  show(answer) {
    this.generation++;
    this.model = emptyModel();
    this.weight = answer.weight;
    this.interval = answer.interval_ns;
    for (const path of addRows(this.model, '', answer.rows, answer.left_out)) if (path !== '') this.model.expanded.add(path);
    this.selected = '';
    this.showRows();
    this.list.element.scrollTop = 0;
    if (answer.weight === 0) this.status.nothing();
    else this.selectAtStart(this.ctx.store.get().fn);
    this.shownStack = null;
    void this.showStack();
  }

  /**
   * The same tree of a newer profile; open and selected rows stay.
   * @param {Tree} answer
   */
  async refresh(answer) {
    const now = ++this.generation;
    const { model: before } = this;
    const model = emptyModel();
    addRows(model, '', answer.rows, answer.left_out);
    const open = [...before.expanded].slice(0, EXPAND_ALL);
    const depth = (/** @type {string} */ path) => path.split('.').length;
    // Whether a node still exists is known only when its parent has its children.
    for (let level = 1; open.some((path) => depth(path) >= level); level++) {
      const wanted = open.filter((path) => depth(path) === level && model.nodes.get(path)?.hasChildren);
      await Promise.all(wanted.map((path) => (model.nodes.get(path)?.children ? undefined : this.loadInto(model, path, Math.max(LIMIT, before.nodes.get(path)?.children?.length ?? 0)))));
      if (now !== this.generation) return;
      for (const path of wanted) model.expanded.add(path);
    }
    const first = before.nodes.size <= 1;
    this.model = model;
    this.weight = answer.weight;
    this.interval = answer.interval_ns;
    if (first) return this.show(answer);
    if (!model.nodes.has(this.selected)) this.selected = '';
    this.showRows();
    if (answer.weight === 0) this.status.nothing();
  }

  /**
   * @param {import('./model.js').Model} model
   * @param {string} path
   * @param {number} limit
   */
  async loadInto(model, path, limit) {
    try {
      const answer = /** @type {Tree} */ (await ask(`call-tree ${path}`, 'tree', this.paramsOf(path, this.ctx.store.get(), limit)));
      addRows(model, path, answer.rows, answer.left_out);
    } catch {
      // It stays closed until the user opens it again.
    }
  }

  showRows() {
    this.rows = rowsOf(this.model);
    this.list.setCount(this.rows.length);
  }

  /**
   * @param {string} path
   * @param {State} state
   * @param {number} limit
   */
  paramsOf(path, state, limit) {
    const params = selectionParams(state);
    if (path !== '') params.set('path', path);
    if (state.inverted) params.set('inverted', '1');
    params.set('limit', String(limit));
    return params;
  }

  /** @param {string} path */
  async load(path, limit = LIMIT) {
    const now = this.generation;
    try {
      const answer = /** @type {Tree} */ (await ask(`call-tree ${path}`, 'tree', this.paramsOf(path, this.ctx.store.get(), limit)));
      if (now === this.generation) addRows(this.model, path, answer.rows, answer.left_out);
    } catch (error) {
      if (now !== this.generation || /** @type {Error} */ (error).name === 'AbortError') return;
      this.status.failed(error, () => {
        this.status.clear();
        void this.load(path, limit).then(() => this.showRows());
      });
    }
  }

  /** @param {string} path */
  async open(path) {
    const node = this.model.nodes.get(path);
    if (!node?.hasChildren) return;
    this.model.expanded.add(path);
    if (!node.children) await this.load(path);
    this.showRows();
  }

  /** @param {string} path */
  close(path) {
    this.model.expanded.delete(path);
    this.showRows();
  }

  /**
   * Opens all nodes below a node, level by level.
   * @param {string} path
   */
  async openAll(path) {
    let level = [path];
    let opened = 0;
    const now = this.generation;
    while (level.length > 0 && opened < EXPAND_ALL) {
      const some = level.filter((one) => this.model.nodes.get(one)?.hasChildren).slice(0, EXPAND_ALL - opened);
      opened += some.length;
      for (let i = 0; i < some.length; i += AT_A_TIME) {
        const batch = some.slice(i, i + AT_A_TIME);
        await Promise.all(batch.map((one) => (this.model.nodes.get(one)?.children ? undefined : this.load(one))));
        if (now !== this.generation) return;
        for (const one of batch) this.model.expanded.add(one);
        this.showRows();
      }
      level = some.flatMap((one) => this.model.nodes.get(one)?.children ?? []);
    }
  }

  /** @param {string} path */
  select(path) {
    const node = this.model.nodes.get(path);
    if (!node || path === '') return;
    this.mark(path, 'near');
    this.ctx.store.update(set, { fn: node.fn });
  }

  /**
   * Shows a row as selected. The rest of the page does not change.
   * @param {string} path
   * @param {'near' | 'middle'} where
   */
  mark(path, where) {
    this.selected = path;
    this.list.refresh();
    this.list.reveal(this.indexOf(path), where);
    this.revealName(path);
    this.list.setActive(rowId(path));
  }

  /**
   * Scrolls sideways to the name of a row, which is far to the right if the row is deep.
   * @param {string} path
   */
  revealName(path) {
    const { element } = this.list;
    const row = this.rows.find((one) => one.path === path && one.more === 0);
    const numbers = element.querySelector('.numbers');
    if (!row || !numbers) return;
    const room = element.clientWidth - numbers.clientWidth;
    const at = indent(row.depth);
    if (at < element.scrollLeft || at + room / 2 > element.scrollLeft + room) element.scrollLeft = Math.max(0, at - room / 4);
  }

  /**
   * Marks the row of the selected function, otherwise the end of the hottest path.
   * @param {number | null} fn
   */
  selectAtStart(fn) {
    const row = this.rows.find(({ path, more }) => more === 0 && fn !== null && this.model.nodes.get(path)?.fn === fn);
    this.mark(row?.path ?? hottest(this.model), 'middle');
  }

  /** Opens and marks the row of the stack that was clicked in the timeline, as far as the tree has it. */
  async showStack() {
    const stack = this.ctx.chosenStack;
    const { fn, inverted } = this.ctx.store.get();
    if (!stack || stack === this.shownStack || this.model.nodes.size <= 1 || stack.at(-1) !== fn) return;
    this.shownStack = stack;
    const now = this.generation;
    let path = '';
    for (const next of inverted ? [...stack].reverse() : stack) {
      const deeper = path === '' ? String(next) : `${path}.${next}`;
      // Filters and transforms leave functions out.
      if (!this.model.nodes.has(deeper)) continue;
      if (path !== '') this.model.expanded.add(path);
      path = deeper;
      if (inverted && next !== fn) break;
      if (!this.model.nodes.get(path)?.children && this.model.nodes.get(path)?.hasChildren) await this.load(path);
      if (now !== this.generation) return;
    }
    if (path === '') return;
    this.showRows();
    this.mark(path, 'middle');
  }

  /** @param {string} path */
  indexOf(path) {
    return this.rows.findIndex((row) => row.path === path && row.more === 0);
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const target = event.target instanceof Element ? event.target : null;
    const more = target?.closest('[data-more]');
    if (more instanceof HTMLElement) return void this.loadMore(more.dataset['more'] ?? '');
    const path = pathUnder(target);
    if (path === null) return;
    if (target?.closest('.twisty')) void (this.model.expanded.has(path) ? this.close(path) : this.open(path));
    this.select(path);
  }

  /** @param {string} path */
  async loadMore(path) {
    await this.load(path, (this.model.nodes.get(path)?.children?.length ?? 0) + 1000);
    this.showRows();
  }

  /** @param {MouseEvent} event */
  onDoubleClick(event) {
    if (event.target instanceof Element && !event.target.closest('.twisty')) this.showSource(pathUnder(event.target) ?? '');
  }

  /** @param {MouseEvent} event */
  onContextMenu(event) {
    const path = event.target instanceof Element ? pathUnder(event.target) : null;
    if (path !== null) this.select(path);
    const target = this.target();
    if (!target) return;
    event.preventDefault();
    const at = document.getElementById(rowId(this.selected))?.getBoundingClientRect();
    const [x, y] = byKeyboard(event) ? [(at?.left ?? 0) + 200, at?.bottom ?? 0] : [event.clientX, event.clientY];
    openFunctionMenu(this.ctx, target, x, y);
  }

  /** @param {string} path */
  showSource(path) {
    const node = this.model.nodes.get(path);
    if (node && path !== '') this.ctx.store.update(set, { tab: 'source', fn: node.fn });
  }

  target() {
    const node = this.model.nodes.get(this.selected);
    if (!node || this.selected === '') return null;
    return { fn: node.fn, path: this.selected.split('.').map(Number), inverted: this.ctx.store.get().inverted };
  }

  /** @param {string} key */
  move(key) {
    this.focus();
    const to = moveInList(key, this.indexOf(this.selected), this.rows.length, this.list.pageSize());
    const row = to === null ? undefined : this.rows[to];
    if (row && row.more === 0) this.select(row.path);
  }

  openOrEnter() {
    if (!this.model.expanded.has(this.selected)) void this.open(this.selected);
    else this.select(this.model.nodes.get(this.selected)?.children?.[0] ?? this.selected);
  }

  closeOrLeave() {
    if (this.model.expanded.has(this.selected)) this.close(this.selected);
    else this.select(parentPath(this.selected));
  }

  focus() {
    this.list.element.focus({ preventScroll: true });
  }

  /** @returns {import('../../keys.js').Key[]} */
  keys() {
    return [
      { keys: LIST_KEYS, text: 'Move in the rows', run: (key) => this.move(key) },
      { keys: ['ArrowRight'], text: 'Open the row, or go to its first child', run: () => this.openOrEnter() },
      { keys: ['ArrowLeft'], text: 'Close the row, or go to its parent', run: () => this.closeOrLeave() },
      { keys: ['*'], text: 'Open all below', run: () => void this.openAll(this.selected) },
      { keys: ['Enter'], text: 'Show source', run: () => this.showSource(this.selected) },
      ...functionKeys(this.ctx, () => this.target()),
    ];
  }
}

/**
 * The path of the row that contains an element.
 * @param {Element | null} element
 */
function pathUnder(element) {
  const row = element?.closest('[data-path]');
  return row instanceof HTMLElement ? row.dataset['path'] ?? '' : null;
}
