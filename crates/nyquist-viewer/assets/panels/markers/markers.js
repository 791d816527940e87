// Markers: their kinds with counts, and a table of them by time.

import { button, fill, h } from '../../dom.js';
import { clean, formatCount, formatTime } from '../../format.js';
import { selectRange, selectThread, set } from '../../store.js';
import { selectionParams } from '../../url.js';
import { createQuestion } from '../../question.js';
import { createStatus } from '../../widgets/status.js';
import { LIST_KEYS, createVirtualList, moveInList } from '../../widgets/virtual_list.js';
import { threadName } from '../timeline/tracks.js';

/** @typedef {import('../../store.js').State} State */
/** @typedef {import('../../api.js').Markers} Markers */
/** @typedef {import('../../api.js').MarkerRow} MarkerRow */

const LIMIT = 500;

/**
 * @param {import('../../context.js').Context} ctx
 * @returns {import('../../context.js').Panel}
 */
export function createMarkers(ctx) {
  const { store, info } = ctx;
  const status = createStatus(store);
  const question = createQuestion('markers', status);
  const names = new Map(info.threads.map((thread) => [thread.thread, threadName(thread)]));
  const kinds = h('div', { class: 'kinds', role: 'group', 'aria-label': 'Kinds of markers' });
  const more = h('div', { class: 'track-more' });
  /** @type {MarkerRow[]} */
  let rows = [];
  let selected = 0;
  let limit = LIMIT;
  let selection = '';
  const list = createVirtualList({
    rowHeight: 20,
    attributes: { class: 'markers', role: 'listbox', tabindex: '0', 'aria-label': 'Markers' },
    row: (index) => markerRow(/** @type {MarkerRow} */ (rows[index]), index, index === selected, names, info.start_ns),
  });
  const head = h('div', { class: 'list-head marker-head', 'aria-hidden': 'true' }, h('span', { class: 'number' }, 'Start'), h('span', { class: 'number' }, 'Duration'),
    h('span', { class: 'marker-thread' }, 'Thread'), h('span', { class: 'marker-kind' }, 'Kind'), h('span', {}, 'Text'));
  const element = h('section', { class: 'panel markers-panel' }, h('div', { class: 'panel-tools' }, kinds),
    h('div', { class: 'panel-body' }, h('div', { class: 'list-box' }, head, list.element, more), status.element));

  /** @param {Markers} answer */
  const show = (answer) => {
    rows = answer.rows;
    selected = Math.min(selected, Math.max(0, rows.length - 1));
    fill(kinds, ...kindButtons(answer, store));
    list.setCount(rows.length);
    const left = answer.count - rows.length;
    fill(more, left > 0 ? button(`Show more (${formatCount(left)} left)`, () => { limit *= 4; update(store.get()); }) : null);
    if (rows.length > 0) return;
    const { search, kind } = store.get();
    if (search !== '' || kind !== null) return status.message('No marker matches.', button('Show all markers', () => store.update(set, { search: '', kind: null })));
    status.message('There are no markers in this selection.');
  };
  /** @param {State} state */
  const update = (state) => {
    const params = selectionParams(state, { filters: false });
    if (state.search !== '') params.set('search', state.search);
    if (state.kind !== null) params.set('kind', state.kind);
    if (params.toString() !== selection) {
      limit = LIMIT;
      selected = 0;
      list.element.scrollTop = 0;
    }
    selection = params.toString();
    params.set('limit', String(limit));
    question.ask('markers', params, show);
  };
  const zoom = (/** @type {number} */ index) => {
    const row = rows[index];
    if (!row) return;
    const around = Math.max(1000, (row[2] ?? 0) * 0.02);
    store.update(selectRange, [Math.max(info.start_ns, Math.floor(row[1] - around)), Math.min(info.end_ns, Math.ceil(row[1] + (row[2] ?? 0) + around))]);
  };
  const select = (/** @type {number} */ index) => {
    selected = index;
    list.element.setAttribute('aria-activedescendant', `marker-${index}`);
    list.refresh();
    list.reveal(index);
  };
  const indexUnder = (/** @type {Event} */ event) => {
    const row = event.target instanceof Element ? event.target.closest('[data-index]') : null;
    return row instanceof HTMLElement ? Number(row.dataset['index']) : null;
  };
  list.element.addEventListener('click', (event) => {
    const index = indexUnder(event);
    if (index !== null) select(index);
  });
  list.element.addEventListener('dblclick', (event) => {
    const index = indexUnder(event);
    if (index !== null) zoom(index);
  });
  list.element.addEventListener('contextmenu', (event) => {
    const index = indexUnder(event) ?? selected;
    const row = rows[index];
    if (!row) return;
    event.preventDefault();
    select(index);
    ctx.menu.open(event.clientX, event.clientY, clean(row[3], 100), [
      { label: 'Zoom to this marker', key: 'z', run: () => zoom(index) },
      { label: `Select the thread ${names.get(row[0]) ?? row[0]}`.slice(0, 80), run: () => store.update(selectThread, row[0], false) },
      { label: 'Only this kind', run: () => store.update(set, { kind: row[3] }) },
    ]);
  });
  return {
    element,
    update,
    focus: () => list.element.focus({ preventScroll: true }),
    keys: () => [
      { keys: LIST_KEYS, text: 'Move in the markers', run: (key) => select(moveInList(key, selected, rows.length, list.pageSize()) ?? selected) },
      { keys: ['z', 'Enter'], text: 'Zoom to the marker', run: () => zoom(selected) },
    ],
  };
}

/**
 * @param {Markers} answer
 * @param {import('../../store.js').Store} store
 */
function kindButtons({ kinds }, store) {
  const { kind: chosen } = store.get();
  return kinds.map(({ name, count, total_ns: total }) => button(
    `${clean(name, 60)}  ${formatCount(count)}`, () => store.update(set, { kind: chosen === name ? null : name }),
    { 'aria-pressed': String(chosen === name), title: `${clean(name, 300)}: ${formatCount(count)}, ${formatTime(total)} in all` }));
}

/**
 * @param {MarkerRow} row
 * @param {number} index
 * @param {boolean} selected
 * @param {Map<number, string>} names
 * @param {number} zero
 */
function markerRow([thread, start, duration, name, text], index, selected, names, zero) {
  const shown = clean(text, 600);
  return h('div', { class: `row marker-row${selected ? ' selected' : ''}`, role: 'option', id: `marker-${index}`, 'aria-selected': selected, 'data-index': index, title: shown },
    h('span', { class: 'number' }, formatTime(start - zero)), h('span', { class: 'number' }, duration === null ? '–' : formatTime(duration)),
    h('span', { class: 'marker-thread' }, names.get(thread) ?? `thread ${thread}`), h('span', { class: 'marker-kind' }, clean(name, 100)),
    h('span', { class: 'marker-text' }, shown));
}
