// Markers: their kinds with counts, a table of them by time, and the stack of the selected one.

import { button, fill, h } from '../../dom.js';
import { clean, formatCount, formatTime } from '../../format.js';
import { selectRange, selectThread, set } from '../../store.js';
import { selectionParams } from '../../url.js';
import { createQuestion } from '../../question.js';
import { createStatus } from '../../widgets/status.js';
import { LIST_KEYS, createVirtualList, moveInList } from '../../widgets/virtual_list.js';
import { threadNames } from '../timeline/tracks.js';
import { markerRow, rowId } from './row.js';
import { createMarkerStack } from './stack.js';

/** @typedef {import('../../store.js').State} State */
/** @typedef {import('../../api.js').Markers} Answer */
/** @typedef {import('../../api.js').MarkerRow} MarkerRow */

const LIMIT = 500;

export class Markers {
  /** @param {import('../../context.js').Context} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.status = createStatus(ctx.store);
    this.question = createQuestion('markers', this.status);
    /** @type {MarkerRow[]} */
    this.rows = [];
    this.selected = 0;
    this.limit = LIMIT;
    this.asked = '';
    this.stack = createMarkerStack(ctx);
    this.kinds = h('div', { class: 'kinds', role: 'group', 'aria-label': 'Kinds of markers' });
    this.more = h('div', { class: 'track-more' });
    this.list = createVirtualList({
      rowHeight: 20, attributes: { class: 'markers', role: 'listbox', tabindex: '0', 'aria-label': 'Markers' }, row: (index) => this.rowElement(index),
    });
    this.element = this.build();
    this.listen();
  }

  build() {
    const head = h('div', { class: 'list-head marker-head', 'aria-hidden': 'true' }, h('span', { class: 'number' }, 'Start'), h('span', { class: 'number' }, 'Duration'),
      h('span', { class: 'marker-thread' }, 'Thread'), h('span', { class: 'marker-kind' }, 'Kind'), h('span', {}, 'Text'));
    return h('section', { class: 'panel markers-panel' }, h('div', { class: 'panel-tools' }, this.kinds),
      h('div', { class: 'split' }, h('div', { class: 'panel-body' }, h('div', { class: 'list-box' }, head, this.list.element, this.more), this.status.element), this.stack.element));
  }

  listen() {
    const { element } = this.list;
    element.addEventListener('click', (event) => {
      const index = indexUnder(event);
      if (index !== null) this.select(index);
    });
    element.addEventListener('dblclick', (event) => {
      const index = indexUnder(event);
      if (index !== null) this.zoom(index);
    });
    element.addEventListener('contextmenu', (event) => this.onContextMenu(event));
  }

  /** @param {number} index */
  rowElement(index) {
    const row = /** @type {MarkerRow} */ (this.rows[index]);
    return markerRow(row, { index, selected: index === this.selected, names: threadNames(this.ctx.info), zero: this.ctx.info.start_ns });
  }

  /** @param {State} state */
  update(state) {
    const params = selectionParams(state, { filters: false });
    if (state.search !== '') params.set('search', state.search);
    if (state.kind !== null) params.set('kind', state.kind);
    if (params.toString() !== this.asked) {
      this.limit = LIMIT;
      this.selected = 0;
      this.list.element.scrollTop = 0;
    }
    this.asked = params.toString();
    params.set('limit', String(this.limit));
    this.question.ask('markers', params, (answer) => this.show(answer));
  }

  /** @param {Answer} answer */
  show(answer) {
    this.rows = answer.rows;
    this.selected = Math.min(this.selected, Math.max(0, this.rows.length - 1));
    fill(this.kinds, ...this.kindButtons(answer));
    this.list.setCount(this.rows.length);
    this.list.setActive(this.rows.length > 0 ? rowId(this.selected) : null);
    this.stack.show(this.rows[this.selected]?.[5] ?? null);
    const left = answer.count - this.rows.length;
    fill(this.more, left > 0 ? button(`Show more (${formatCount(left)} left)`, () => this.showMore()) : null);
    if (this.rows.length === 0) this.showNothing();
  }

  showMore() {
    this.limit *= 4;
    this.update(this.ctx.store.get());
  }

  showNothing() {
    const { store } = this.ctx;
    const { search, kind } = store.get();
    if (search === '' && kind === null) return this.status.message('There are no markers in this selection.');
    this.status.message('No marker matches.', button('Show all markers', () => store.update(set, { search: '', kind: null })));
  }

  /** @param {Answer} answer */
  kindButtons({ kinds }) {
    const { store, offline } = this.ctx;
    const { kind: chosen } = store.get();
    const buttons = kinds.map(({ name, count, total_ns: total }) => button(
      `${clean(name, 60)}  ${formatCount(count)}`, () => store.update(set, { kind: chosen === name ? null : name }),
      { 'aria-pressed': String(chosen === name), title: `${clean(name, 300)}: ${formatCount(count)}, ${formatTime(total)} in all` }));
    const withStacks = kinds.find(({ name, has_stacks: has }) => has && name === chosen);
    if (withStacks && !offline) buttons.push(button('Flame graph of their stacks', () => this.showStacks(withStacks.name), { class: 'kind-stacks' }));
    return buttons;
  }

  /**
   * Counts the markers of a kind instead of samples.
   * @param {string} kind
   */
  showStacks(kind) {
    this.ctx.store.update(set, { event: `marker:${kind}`, time: 'running', tab: 'flame-graph', fn: null, transforms: [] });
  }

  /** @param {number} index */
  zoom(index) {
    const row = this.rows[index];
    if (!row) return;
    const { store, info } = this.ctx;
    const [, start, duration] = row;
    const around = Math.max(1000, (duration ?? 0) * 0.02);
    store.update(selectRange, [Math.max(info.start_ns, Math.floor(start - around)), Math.min(info.end_ns, Math.ceil(start + (duration ?? 0) + around))]);
  }

  /** @param {number} index */
  select(index) {
    this.selected = index;
    this.list.refresh();
    this.list.reveal(index);
    this.list.setActive(rowId(index));
    this.stack.show(this.rows[index]?.[5] ?? null);
  }

  /** @param {MouseEvent} event */
  onContextMenu(event) {
    const index = indexUnder(event) ?? this.selected;
    const row = this.rows[index];
    if (!row) return;
    event.preventDefault();
    this.select(index);
    const { menu, store } = this.ctx;
    const [thread, , , name] = row;
    menu.open(event.clientX, event.clientY, clean(name, 100), [
      { label: 'Zoom to this marker', key: 'z', run: () => this.zoom(index) },
      { label: `Select the thread ${threadNames(this.ctx.info).get(thread) ?? thread}`.slice(0, 80), run: () => store.update(selectThread, thread, false) },
      { label: 'Only this kind', run: () => store.update(set, { kind: name }) },
      ...(row[5] === null || this.ctx.offline ? [] : [{ label: 'Flame graph of the stacks of this kind', run: () => this.showStacks(name) }]),
    ]);
  }

  /** @param {string} key */
  move(key) {
    this.focus();
    this.select(moveInList(key, this.selected, this.rows.length, this.list.pageSize()) ?? this.selected);
  }

  focus() {
    this.list.element.focus({ preventScroll: true });
  }

  /** @returns {import('../../keys.js').Key[]} */
  keys() {
    return [
      { keys: LIST_KEYS, text: 'Move in the markers', run: (key) => this.move(key) },
      { keys: ['z', 'Enter'], text: 'Zoom to the marker', run: () => this.zoom(this.selected) },
    ];
  }
}

/**
 * The row under the pointer.
 * @param {Event} event
 */
function indexUnder(event) {
  const row = event.target instanceof Element ? event.target.closest('[data-index]') : null;
  return row instanceof HTMLElement ? Number(row.dataset['index']) : null;
}
