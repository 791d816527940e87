// The timeline: CPU over time of all threads and of each, where ranges and threads are selected.

import { button, fill, h, onResize } from '../../dom.js';
import { onThemeChange } from '../../canvas.js';
import { formatTime } from '../../format.js';
import { rangeOf, selectRange, selectThread, set } from '../../store.js';
import { toTime } from '../../axis.js';
import { createStatus } from '../../widgets/status.js';
import { listenForDrags } from '../../widgets/drag.js';
import { createAnswers } from './answers.js';
import { drawAxis, drawGraph } from './draw.js';
import { partOf, peak, scaleTop, stack } from './graph.js';
import { createHover } from './hover.js';
import { createTrackRow } from './track_row.js';
import { FIRST_TRACKS, chooseTracks } from './tracks.js';

/** @typedef {import('../../store.js').State} State */

/**
 * @param {import('../../context.js').Context} ctx
 * @returns {import('../../context.js').Panel & {focusSearch: () => void}}
 */
export function createTimeline(ctx) {
  const { store, info } = ctx;
  const zero = info.start_ns;
  const colors = info.categories.map(({ color }) => color);
  const status = createStatus(store);
  const view = createView();
  const element = h('section', { class: 'timeline', 'aria-label': 'Timeline' }, view.top, view.tracks, status.element);
  const overview = createAnswers('overview', status, info);
  const tracks = createAnswers('tracks', status, info);
  /** @type {import('./track_row.js').TrackRow[]} */
  let rows = [];
  let rowsKey = '';
  let limit = FIRST_TRACKS;

  const shownRange = () => rangeOf(store.get()) ?? /** @type {[number, number]} */ ([info.start_ns, info.end_ns]);
  const scaleOf = (/** @type {HTMLElement} */ area) => {
    const [start, end] = area.dataset['area'] === 'whole' ? [info.start_ns, info.end_ns] : shownRange();
    return { start, end, width: area.clientWidth };
  };

  /** @type {(answers: ReturnType<typeof createAnswers>, thread: number | null) => import('./draw.js').Graph} */
  const graphOf = (answers, thread) => {
    const layers = (/** @type {import('./answers.js').Which} */ which) => {
      const found = answers.find(which, thread);
      return found && stack(found.track, found.part);
    };
    const shown = layers('shown') ?? [];
    return { layers: shown, ghost: layers('whole'), mark: partOf(shown, layers('marked')), top: 1, colors };
  };
  const drawOverview = () => {
    const graph = graphOf(overview, null);
    const highest = Math.max(peak(graph.layers), peak(graph.ghost ?? []));
    drawGraph(view.overview, { ...graph, top: scaleTop(highest) });
    view.peak.textContent = highest > 0 ? `peak ${peakText(highest, store.get().time === 'running' ? 'CPU' : 'thread')}` : '';
  };
  const drawTracks = () => {
    for (const { canvas, thread } of rows) drawGraph(canvas, graphOf(tracks, thread.thread));
  };
  const drawAxes = () => {
    drawAxis(view.wholeAxis, info.start_ns, info.end_ns, zero);
    drawAxis(view.rangeAxis, ...shownRange(), zero);
  };
  const draw = () => {
    drawOverview();
    drawTracks();
    drawRange();
  };
  const drawRange = () => {
    drawAxes();
    placeBrush(view.selected, rangeOf(store.get()), { start: info.start_ns, end: info.end_ns });
  };

  /** @param {State} state */
  const ask = (state) => {
    const width = view.overview.clientWidth;
    if (width === 0) return;
    overview.ask(state, width, null, drawOverview);
    if (rows.length > 0) tracks.ask(state, width, rows.map((row) => row.thread.thread), drawTracks);
  };

  /** @param {State} state */
  const update = (state) => {
    const { shown, left } = chooseTracks(info.threads, { search: view.search.value, limit, selected: state.threads });
    const key = shown.map(({ thread }) => thread).join();
    if (key !== rowsKey) {
      rowsKey = key;
      rows = shown.map((thread) => createTrackRow(thread, info, info.summary.processes > 1));
      fill(view.list, ...rows.map((row) => row.element));
      drawTracks();
    }
    fill(view.more, left > 0 ? button(`Show ${left} more`, () => { limit = left > 200 ? limit + 200 : Infinity; update(store.get()); }) : null,
      shown.length === 0 ? h('span', {}, info.threads.length > 0 ? 'No thread has this name.' : 'There are no threads.') : null);
    for (const { element: row, thread } of rows) {
      const selected = state.threads.includes(thread.thread);
      row.setAttribute('aria-selected', String(selected));
      row.classList.toggle('unselected', state.threads.length > 0 && !selected);
    }
    view.all.setAttribute('aria-pressed', String(state.threads.length === 0));
    element.classList.toggle('zoomed', state.ranges.length > 0);
    drawRange();
    ask(state);
  };

  view.all.addEventListener('click', () => store.update(set, { threads: [] }));
  view.search.addEventListener('input', () => update(store.get()));
  listenForDrags(element, {
    area: (target) => target.closest('[data-area]'),
    preview: (area, from, to) => {
      const { start, end, width } = scaleOf(area);
      const range = [start + ((end - start) * from) / width, start + ((end - start) * to) / width];
      for (const brush of [view.brush, view.trackBrush]) {
        const own = scaleOf(/** @type {HTMLElement} */ (brush.parentElement));
        placeBrush(brush, /** @type {[number, number]} */ (range), own);
        brush.textContent = brush === view.brush ? formatTime(Number(range[1]) - Number(range[0])) : '';
      }
    },
    cancel: () => [view.brush, view.trackBrush].forEach((brush) => { brush.hidden = true; }),
    select: (area, from, to) => {
      const scale = scaleOf(area);
      const range = /** @type {[number, number]} */ ([toTime(scale, from), toTime(scale, to)]);
      if (range[1] > range[0]) store.update(selectRange, range);
    },
    click: (target, event) => {
      const row = target.closest('[data-thread]');
      if (row instanceof HTMLElement) store.update(selectThread, Number(row.dataset['thread']), event.ctrlKey || event.metaKey);
    },
  });
  view.tracks.addEventListener('click', (event) => {
    const label = event.target instanceof Element ? event.target.closest('.track-label') : null;
    const row = label?.closest('[data-thread]');
    if (row instanceof HTMLElement) store.update(selectThread, Number(row.dataset['thread']), event.ctrlKey || event.metaKey);
  });
  listenForRowKeys(view.list, store);
  createHover(element, ctx, (area) => {
    const row = area.closest('[data-thread]');
    const thread = row instanceof HTMLElement ? Number(row.dataset['thread']) : null;
    const graph = graphOf(row ? tracks : overview, thread);
    return { scale: scaleOf(area), layers: graph.layers, mark: graph.mark, title: row?.getAttribute('aria-label')?.split(', ')[0] ?? 'All threads' };
  });
  onResize(view.overview, () => {
    draw();
    update(store.get());
  });
  onThemeChange(draw);
  return { element, update, focusSearch: () => view.search.focus() };
}

function createView() {
  const overview = h('canvas', { class: 'graph', 'aria-hidden': 'true' });
  const wholeAxis = h('canvas', { class: 'axis', 'aria-hidden': 'true' });
  const rangeAxis = h('canvas', { class: 'axis', 'aria-hidden': 'true' });
  const brush = h('div', { class: 'brush', hidden: true });
  const trackBrush = h('div', { class: 'brush', hidden: true });
  const selected = h('div', { class: 'brush brush-selected', hidden: true });
  const peak = h('span', { class: 'track-time' });
  const all = button('All threads', () => undefined, { class: 'all-threads', 'aria-pressed': 'true' });
  const search = h('input', { type: 'search', class: 'track-search', placeholder: 'Find a thread', 'aria-label': 'Find a thread by name' });
  const list = h('div', { class: 'track-list', role: 'listbox', 'aria-label': 'Threads', 'aria-multiselectable': 'true' });
  const more = h('div', { class: 'track-more' });
  const top = h('div', { class: 'timeline-top' },
    h('div', { class: 'track overview' }, h('div', { class: 'overview-label' }, all, peak),
      h('div', { class: 'graph-area', 'data-area': 'whole' }, overview, selected, brush)),
    h('div', { class: 'track axis-row whole-axis' }, h('div', { class: 'overview-label' }), h('div', { class: 'graph-area', 'data-area': 'whole' }, wholeAxis)),
    h('div', { class: 'track axis-row' }, h('div', { class: 'overview-label' }, search),
      h('div', { class: 'graph-area', 'data-area': 'range' }, rangeAxis)));
  const brushArea = h('div', { class: 'tracks-brush-area', 'data-area': 'range' }, trackBrush);
  const tracks = h('div', { class: 'tracks' }, h('div', { class: 'tracks-inner' }, list, brushArea, more));
  return { top, tracks, overview, wholeAxis, rangeAxis, brush, trackBrush, selected, peak, all, search, list, more };
}

/**
 * @param {number} highest
 * @param {string} noun
 */
function peakText(highest, noun) {
  const text = highest.toFixed(highest < 9.95 ? 1 : 0);
  return `${text} ${noun}${text === '1.0' ? '' : 's'}`;
}

/**
 * @param {HTMLElement} brush
 * @param {[number, number] | null} range
 * @param {{start: number, end: number}} scale
 */
function placeBrush(brush, range, { start, end }) {
  brush.hidden = range === null;
  if (!range) return;
  const share = (/** @type {number} */ time) => Math.max(0, Math.min(1, (time - start) / (end - start))) * 100;
  brush.style.left = `${share(range[0])}%`;
  brush.style.width = `${share(range[1]) - share(range[0])}%`;
}

/**
 * @param {HTMLElement} list
 * @param {import('../../store.js').Store} store
 */
function listenForRowKeys(list, store) {
  list.tabIndex = 0;
  list.addEventListener('keydown', (event) => {
    const rows = [...list.querySelectorAll('.track')];
    const at = rows.findIndex((row) => row === document.activeElement);
    const to = event.key === 'ArrowDown' ? at + 1 : event.key === 'ArrowUp' ? at - 1 : null;
    const row = rows[at];
    if (to !== null) /** @type {HTMLElement | undefined} */ (rows[Math.max(0, Math.min(rows.length - 1, to))])?.focus();
    else if ((event.key === 'Enter' || event.key === ' ') && row instanceof HTMLElement) {
      store.update(selectThread, Number(row.dataset['thread']), event.ctrlKey || event.metaKey);
    } else return;
    event.preventDefault();
  });
}
