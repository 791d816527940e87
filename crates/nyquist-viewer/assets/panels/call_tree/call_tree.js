// The call tree: loads children when they are opened, and moves through the rows by pointer and keys.

import { h } from '../../dom.js';
import { nameOf } from '../../names.js';
import { matcher } from '../../pattern.js';
import { set } from '../../store.js';
import { selectionParams } from '../../url.js';
import { ask } from '../../api.js';
import { createQuestion } from '../../question.js';
import { createStatus } from '../../widgets/status.js';
import { createChoice } from '../../widgets/choice.js';
import { byKeyboard, functionKeys, openFunctionMenu } from '../../widgets/function_menu.js';
import { LIST_KEYS, createVirtualList, moveInList } from '../../widgets/virtual_list.js';
import { addRows, emptyModel, hottest, parentPath, rowsOf } from './model.js';
import { moreRow, nodeRow, rowId } from './row.js';

/** @typedef {import('../../store.js').State} State */
/** @typedef {import('../../api.js').Tree} Tree */

const LIMIT = 100;
/** How many nodes `*` opens at most. */
const EXPAND_ALL = 120;

/**
 * @param {import('../../context.js').Context} ctx
 * @returns {import('../../context.js').Panel}
 */
export function createCallTree(ctx) {
  const { store, info } = ctx;
  const status = createStatus(store);
  const question = createQuestion('call-tree', status);
  const order = createChoice('Order', [
    ['Callers first', () => store.update(set, { inverted: false })], ['Inverted', () => store.update(set, { inverted: true })],
  ]);
  let model = emptyModel();
  /** @type {import('./model.js').Row[]} */
  let rows = [];
  let selected = '';
  let weight = 0;
  let interval = info.interval_ns;
  let found = matcher('');
  let searched = '';
  /** Counts the trees, so that answers for an older one are not taken in. */
  let generation = 0;

  const list = createVirtualList({
    rowHeight: 20,
    attributes: { class: 'tree', role: 'tree', tabindex: '0', 'aria-label': 'Call tree' },
    row: (index) => {
      const row = /** @type {import('./model.js').Row} */ (rows[index]);
      const node = model.nodes.get(row.path);
      if (row.more > 0 || !node) return moreRow(row);
      return nodeRow(node, row, {
        weight, interval, expanded: model.expanded.has(row.path), selected: row.path === selected, found: found(nameOf(node.fn).raw),
      });
    },
  });
  const head = h('div', { class: 'list-head tree-head', 'aria-hidden': 'true' }, h('span', { class: 'number share' }, 'Total'),
    h('span', { class: 'number wide' }, 'Time'), h('span', { class: 'number' }, 'Self'), h('span', { class: 'tree-head-name' }, 'Function'));
  const element = h('section', { class: 'panel call-tree' }, h('div', { class: 'panel-tools' }, order.element),
    h('div', { class: 'panel-body' }, h('div', { class: 'list-box' }, head, list.element), status.element));

  const show = () => {
    rows = rowsOf(model);
    list.setCount(rows.length);
  };
  /**
   * @param {string} path
   * @param {State} state
   */
  const paramsOf = (path, state, limit = LIMIT) => {
    const params = selectionParams(state);
    if (path !== '') params.set('path', path);
    if (state.inverted) params.set('inverted', '1');
    params.set('limit', String(limit));
    return params;
  };
  /** @param {string} path */
  const load = async (path, limit = LIMIT) => {
    const now = generation;
    try {
      const answer = /** @type {Tree} */ (await ask(`call-tree ${path}`, 'tree', paramsOf(path, store.get(), limit)));
      if (now === generation) addRows(model, path, answer.rows, answer.left_out);
    } catch (error) {
      if (now === generation && /** @type {Error} */ (error).name !== 'AbortError') status.failed(error, () => { status.clear(); void load(path, limit); });
    }
  };
  /** @param {string} path */
  const open = async (path) => {
    const node = model.nodes.get(path);
    if (!node?.hasChildren) return;
    model.expanded.add(path);
    if (!node.children) await load(path);
    show();
  };
  /** @param {string} path */
  const close = (path) => {
    model.expanded.delete(path);
    show();
  };
  /** @param {string} path */
  const select = (path) => {
    const node = model.nodes.get(path);
    if (!node || path === '') return;
    selected = path;
    list.element.setAttribute('aria-activedescendant', rowId(path));
    store.update(set, { fn: node.fn });
    list.refresh();
    list.reveal(rows.findIndex((row) => row.path === path && row.more === 0));
  };
  /**
   * The row of the function that is selected already, else the end of the hottest path.
   * @param {number | null} fn
   */
  const selectAtStart = (fn) => {
    const row = rows.find(({ path, more }) => more === 0 && fn !== null && model.nodes.get(path)?.fn === fn);
    if (row || fn === null) return select(row?.path ?? hottest(model));
    selected = hottest(model);
    list.refresh();
  };
  /** Opens all below a node, level by level. @param {string} path */
  const openAll = async (path) => {
    let level = [path];
    let opened = 0;
    const now = generation;
    while (level.length > 0 && opened < EXPAND_ALL) {
      const some = level.filter((one) => model.nodes.get(one)?.hasChildren).slice(0, EXPAND_ALL - opened);
      opened += some.length;
      for (let i = 0; i < some.length; i += 6) {
        const batch = some.slice(i, i + 6);
        await Promise.all(batch.map((one) => (model.nodes.get(one)?.children ? undefined : load(one))));
        if (now !== generation) return;
        for (const one of batch) model.expanded.add(one);
        show();
      }
      level = some.flatMap((one) => model.nodes.get(one)?.children ?? []);
    }
  };

  /** @param {State} state */
  const update = (state) => {
    order.press(state.inverted ? 1 : 0);
    if (searched !== state.search) {
      searched = state.search;
      found = matcher(searched);
      list.refresh();
    }
    const params = paramsOf('', state);
    params.set('expand', '1');
    question.ask('tree', params, (/** @type {Tree} */ answer) => {
      generation++;
      model = emptyModel();
      ({ weight, interval_ns: interval } = answer);
      for (const path of addRows(model, '', answer.rows, answer.left_out)) if (path !== '') model.expanded.add(path);
      show();
      selected = '';
      list.element.scrollTop = 0;
      if (answer.weight === 0) status.nothing();
      else selectAtStart(store.get().fn);
    });
  };

  list.element.addEventListener('click', (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const more = target?.closest('[data-more]');
    const row = target?.closest('[data-path]');
    if (more instanceof HTMLElement) {
      const path = more.dataset['more'] ?? '';
      void load(path, (model.nodes.get(path)?.children?.length ?? 0) + 1000).then(show);
    } else if (row instanceof HTMLElement) {
      const path = row.dataset['path'] ?? '';
      if (target?.closest('.twisty')) void (model.expanded.has(path) ? close(path) : open(path));
      select(path);
    }
  });
  const sourceOf = (/** @type {string} */ path) => {
    const node = model.nodes.get(path);
    if (node && path !== '') store.update(set, { tab: 'source', fn: node.fn });
  };
  list.element.addEventListener('dblclick', (event) => {
    const row = event.target instanceof Element && !event.target.closest('.twisty') ? event.target.closest('[data-path]') : null;
    if (row instanceof HTMLElement) sourceOf(row.dataset['path'] ?? '');
  });
  list.element.addEventListener('contextmenu', (event) => {
    const row = event.target instanceof Element ? event.target.closest('[data-path]') : null;
    if (row instanceof HTMLElement) select(row.dataset['path'] ?? '');
    const target = targetOf();
    if (!target) return;
    event.preventDefault();
    const at = document.getElementById(rowId(selected))?.getBoundingClientRect();
    const byKey = byKeyboard(event);
    openFunctionMenu(ctx, target, byKey ? (at?.left ?? 0) + 200 : event.clientX, byKey ? at?.bottom ?? 0 : event.clientY);
  });
  const targetOf = () => {
    const node = model.nodes.get(selected);
    return node && selected !== '' ? { fn: node.fn, path: selected.split('.').map(Number), inverted: store.get().inverted } : null;
  };
  /** @param {string} key */
  const move = (key) => {
    list.element.focus({ preventScroll: true });
    const to = moveInList(key, rows.findIndex((row) => row.path === selected && row.more === 0), rows.length, list.pageSize());
    const row = to === null ? undefined : rows[to];
    if (row && row.more === 0) select(row.path);
  };
  const openOrEnter = () => {
    if (!model.expanded.has(selected)) void open(selected);
    else select(model.nodes.get(selected)?.children?.[0] ?? selected);
  };
  const closeOrLeave = () => {
    if (model.expanded.has(selected)) close(selected);
    else select(parentPath(selected));
  };
  return {
    element,
    update,
    focus: () => list.element.focus({ preventScroll: true }),
    keys: () => [
      { keys: LIST_KEYS, text: 'Move in the rows', run: move },
      { keys: ['ArrowRight'], text: 'Open the row, or go to its first child', run: openOrEnter },
      { keys: ['ArrowLeft'], text: 'Close the row, or go to its parent', run: closeOrLeave },
      { keys: ['*'], text: 'Open all below', run: () => void openAll(selected) },
      { keys: ['Enter'], text: 'Show source', run: () => sourceOf(selected) },
      ...functionKeys(ctx, targetOf),
    ],
  };
}
