// The timeline: CPU over time of all threads and of each one. Ranges and threads are selected here.

import { button, fill, h, onResize } from '../../dom.js';
import { onThemeChange } from '../../canvas.js';
import { formatSpan, isShareOfTime } from '../../measure.js';
import { formatCounted } from '../../format.js';
import { hideThread, rangeOf, selectRange, selectThread, set } from '../../store.js';
import { toTime } from '../../axis.js';
import { createStatus } from '../../widgets/status.js';
import { listenForDrags } from '../../widgets/drag.js';
import { listenForZoom } from '../../widgets/time_zoom.js';
import { createAnswers } from './answers.js';
import { createCounters } from './counters.js';
import { drawAxis, drawGraph } from './draw.js';
import { partOf, peak, scaleTop, stack } from './graph.js';
import { createHover } from './hover.js';
import { createMarkerTracks } from './marker_track.js';
import { openTrackMenu } from './track_menu.js';
import { createTrackRow } from './track_row.js';
import { selectStack } from './select_stack.js';
import { createThreadAmounts } from './thread_amounts.js';
import { FIRST_TRACKS, chooseTracks, shortDetails, threadNames } from './tracks.js';
import { createView, peakText, placeBrush, rateText } from './view.js';

/** @typedef {import('../../store.js').State} State */
/** @typedef {import('../../store.js').Range} Range */

/** The number of tracks that are requested and drawn at a time, so that small scrolling needs no request. */
const TRACKS_A_STEP = 20;

export class Timeline {
  /** @param {import('../../context.js').Context} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.status = createStatus(ctx.store);
    this.overview = createAnswers('overview', this.status, ctx.info);
    this.tracks = createAnswers('tracks', this.status, ctx.info);
    this.counters = createCounters(ctx, this.status);
    this.amounts = createThreadAmounts(ctx);
    this.markers = createMarkerTracks(this.status);
    /** @type {import('./track_row.js').TrackRow[]} */
    this.rows = [];
    this.shownThreads = '';
    this.said = ctx.info.threads;
    this.limit = FIRST_TRACKS;
    /** The value at the upper edge of the threads' graphs. */
    this.top = 1;
    this.view = createView();
    this.element = h('section', { class: 'timeline', 'data-panel': 'timeline', 'aria-label': 'Timeline' }, this.view.top, this.view.tracks, this.status.element);
    this.view.counters.replaceWith(this.counters.element);
    this.listen();
  }

  listen() {
    const { store } = this.ctx;
    this.view.all.addEventListener('click', () => store.update(set, { threads: [] }));
    this.view.search.addEventListener('input', () => this.update(store.get()));
    this.view.tracks.addEventListener('click', (event) => {
      if (event.target instanceof Element && event.target.closest('.track-label')) this.selectThread(event.target, event);
    });
    this.view.list.addEventListener('keydown', (event) => this.onRowKey(event));
    this.view.list.addEventListener('contextmenu', (event) => openTrackMenu(this.ctx, event));
    listenForDrags(this.element, {
      area: (target) => target.closest('[data-area]'),
      preview: (area, from, to) => this.preview(this.rangeIn(area, from, to)),
      cancel: () => this.view.brushes.forEach((brush) => { brush.hidden = true; }),
      select: (area, from, to) => this.selectRange(this.rangeIn(area, from, to)),
      click: (target, event) => this.onClick(target, event),
    });
    listenForZoom(this.element, this.ctx, (target) => target.closest('[data-area="range"]') ?? (target.closest('[data-area]') ? this.view.overview : null));
    createHover(this.element, this.ctx, (area) => this.under(area), this.counters.say);
    this.element.addEventListener('scroll', () => requestAnimationFrame(() => this.onScroll()), { passive: true });
    onResize(this.view.overview, () => {
      this.draw();
      this.update(store.get());
    });
    onThemeChange(() => this.draw());
  }

  /** @param {State} state */
  update(state) {
    this.showTracks(state);
    for (const { element, thread } of this.rows) {
      const selected = state.threads.includes(thread.thread);
      element.setAttribute('aria-selected', String(selected));
      element.classList.toggle('unselected', state.threads.length > 0 && !selected);
    }
    this.view.all.setAttribute('aria-pressed', String(state.threads.length === 0));
    this.element.classList.toggle('zoomed', rangeOf(state) !== null);
    this.drawRange();
    this.ask(state);
  }

  /** @param {State} state */
  showTracks(state) {
    const { info } = this.ctx;
    const { shown, left } = chooseTracks(info, { search: this.view.search.value, limit: this.limit, selected: state.threads, hidden: state.hidden });
    const threads = shown.map(({ thread }) => thread).join();
    if (threads !== this.shownThreads) {
      this.shownThreads = threads;
      const details = shortDetails(info.threads);
      this.rows = shown.map((thread) => createTrackRow(thread, info, (one) => (info.cores.includes(one) ? '' : details(one))));
      this.placeRows();
      this.drawTracks();
    } else if (this.said !== info.threads) shown.forEach((thread, i) => this.rows[i]?.say(thread));
    this.said = info.threads;
    this.amounts.ask(state, (amounts) => this.rows.forEach((row) => row.say(amounts.of(row.thread), amounts.whole)));
    const nothing = info.threads.length > 0 ? 'No thread has this name.' : 'There are no threads.';
    const hidden = state.hidden.length;
    fill(this.view.more, left > 0 ? button(`Show ${left} more`, () => this.showMore(left)) : null,
      hidden > 0 ? button(`Show ${formatCounted(hidden, 'hidden track')}`, () => this.ctx.store.update(set, { hidden: [] }), { class: 'show-hidden' }) : null,
      shown.length === 0 && hidden === 0 ? h('span', {}, nothing) : null);
  }

  /** Places the tracks below each other. */
  placeRows() {
    fill(this.view.list, ...this.rows.map((row) => row.element));
  }

  /** @param {number} left */
  showMore(left) {
    this.limit = left > 200 ? this.limit + 200 : Infinity;
    this.update(this.ctx.store.get());
  }

  /** @param {State} state */
  ask(state) {
    const width = this.view.overview.clientWidth;
    if (width === 0) return;
    this.overview.ask(state, width, null, () => this.drawOverview());
    this.counters.ask(state, width);
    this.markers.ask(state, this.nearRows(), width, () => this.drawTracks());
    if (this.rows.length > 0) this.tracks.ask(state, width, this.nearRows().map((row) => row.thread.thread), () => this.drawTracks());
  }

  /** The visible rows, with some above and below. */
  nearRows() {
    const { top, bottom } = this.element.getBoundingClientRect();
    const margin = (bottom - top) / 2;
    const isNear = (/** @type {import('./track_row.js').TrackRow} */ { element }) => {
      const row = element.getBoundingClientRect();
      return row.bottom > top - margin && row.top < bottom + margin;
    };
    const first = Math.max(0, this.rows.findIndex(isNear));
    const count = this.rows.filter(isNear).length;
    const start = Math.floor(first / TRACKS_A_STEP) * TRACKS_A_STEP;
    return this.rows.slice(start, Math.ceil((first + Math.max(1, count)) / TRACKS_A_STEP) * TRACKS_A_STEP);
  }

  onScroll() {
    this.drawTracks();
    this.ask(this.ctx.store.get());
  }

  /**
   * @param {number | null} thread null for all together
   * @returns {import('./draw.js').Graph}
   */
  graphOf(thread) {
    const layers = (/** @type {import('./answers.js').Which} */ which) => {
      const found = (thread === null ? this.overview : this.tracks).find(which, thread);
      return found && stack(found.track, isShareOfTime() ? found.part : found.part / 1e9);
    };
    const shown = layers('shown') ?? [];
    return { layers: shown, ghost: layers('whole'), mark: partOf(shown, layers('marked')), top: this.top, colors: this.ctx.info.categories.map(({ color }) => color) };
  }

  drawOverview() {
    const graph = this.graphOf(null);
    const highest = Math.max(peak(graph.layers), peak(graph.ghost ?? []));
    drawGraph(this.view.overview, { ...graph, top: scaleTop(highest) });
    const { measure } = this.ctx.info;
    const isOnCpu = this.ctx.store.get().time === 'running' && measure.name === 'CPU time';
    this.view.peak.textContent = isShareOfTime() ? (measure.unit === 'ns' ? peakText(highest, isOnCpu ? 'CPU' : 'thread') : '') : rateText(highest);
  }

  drawTracks() {
    const near = new Set(this.nearRows());
    // Threads have one scale, so that they can be compared: a CPU, or the highest of the visible ones.
    const highest = isShareOfTime() ? 1 : Math.max(0, ...[...near].map(({ thread }) => peak(this.graphOf(thread.thread).layers)));
    this.top = isShareOfTime() ? 1 : scaleTop(highest);
    for (const row of this.rows) {
      if (near.has(row)) {
        drawGraph(row.canvas, this.graphOf(row.thread.thread));
        this.markers.draw(row, ...this.shownRange());
      } else if (row.canvas.width > 0) [row.canvas.width, row.canvas.height] = [0, 0];
    }
  }

  drawRange() {
    const { start_ns: start, end_ns: end } = this.ctx.info;
    drawAxis(this.view.wholeAxis, start, end, start);
    drawAxis(this.view.rangeAxis, ...this.shownRange(), start);
    placeBrush(this.view.selected, rangeOf(this.ctx.store.get()), { start, end });
  }

  draw() {
    this.drawOverview();
    this.drawTracks();
    this.counters.draw();
    this.drawRange();
  }

  /** @returns {Range} */
  shownRange() {
    return rangeOf(this.ctx.store.get()) ?? [this.ctx.info.start_ns, this.ctx.info.end_ns];
  }

  /** @param {HTMLElement} area */
  scaleOf(area) {
    const [start, end] = area.dataset['area'] === 'whole' ? [this.ctx.info.start_ns, this.ctx.info.end_ns] : this.shownRange();
    return { start, end, width: area.clientWidth };
  }

  /**
   * @param {HTMLElement} area
   * @param {number} from
   * @param {number} to
   * @returns {Range}
   */
  rangeIn(area, from, to) {
    const scale = this.scaleOf(area);
    return [toTime(scale, from), toTime(scale, to)];
  }

  /** @param {Range} range */
  preview(range) {
    for (const brush of this.view.brushes) placeBrush(brush, range, this.scaleOf(/** @type {HTMLElement} */ (brush.parentElement)));
    const [first] = this.view.brushes;
    if (first) first.textContent = formatSpan(range[1] - range[0]);
  }

  /** @param {Range} range */
  selectRange(range) {
    if (range[1] > range[0] && !this.ctx.offline) this.ctx.store.update(selectRange, range);
  }

  /**
   * @param {Element} target
   * @param {MouseEvent | KeyboardEvent} event
   */
  selectThread(target, event) {
    const row = target.closest('[data-thread]');
    if (row instanceof HTMLElement && !this.ctx.offline) this.ctx.store.update(selectThread, Number(row.dataset['thread']), event.ctrlKey || event.metaKey);
  }

  /**
   * A click in a graph selects the thread, and the stack that it has there. It does not give all threads back.
   * @param {Element} target
   * @param {PointerEvent} event
   */
  onClick(target, event) {
    const area = target.closest('[data-area]');
    const row = target.closest('[data-thread]');
    if (!(area instanceof HTMLElement) || !(row instanceof HTMLElement) || this.ctx.offline) return this.selectThread(target, event);
    const thread = Number(row.dataset['thread']);
    const { threads } = this.ctx.store.get();
    if (threads.length !== 1 || threads[0] !== thread) this.selectThread(target, event);
    void selectStack(this.ctx, thread, toTime(this.scaleOf(area), event.clientX - area.getBoundingClientRect().left));
  }

  /** @param {KeyboardEvent} event */
  onRowKey(event) {
    const at = this.rows.findIndex(({ element }) => element === document.activeElement);
    const to = event.key === 'ArrowDown' ? at + 1 : event.key === 'ArrowUp' ? at - 1 : null;
    const row = this.rows[at]?.element;
    if (to !== null) this.rows[Math.max(0, Math.min(this.rows.length - 1, to))]?.element.focus();
    else if ((event.key === 'Enter' || event.key === ' ') && row) this.selectThread(row, event);
    else if (event.key === 'Delete' && row) this.ctx.store.update(hideThread, Number(row.dataset['thread']));
    else return;
    event.preventDefault();
  }

  /**
   * The target under the pointer.
   * @param {HTMLElement} area
   * @returns {import('./hover.js').Under}
   */
  under(area) {
    const row = area.closest('[data-thread]');
    const { layers, mark } = this.graphOf(row instanceof HTMLElement ? Number(row.dataset['thread']) : null);
    return { scale: this.scaleOf(area), layers, mark, thread: row instanceof HTMLElement ? Number(row.dataset['thread']) : null, title: row instanceof HTMLElement ? threadNames(this.ctx.info).get(Number(row.dataset['thread'])) ?? '?' : 'All threads', part: this.partOf(row !== null) };
  }

  /**
   * The length of a part of the shown graphs.
   * @param {boolean} ofThread
   */
  partOf(ofThread) {
    return (ofThread ? this.tracks : this.overview).answers.shown?.part_ns ?? 1;
  }

  focusSearch() {
    this.view.search.focus();
  }
}
