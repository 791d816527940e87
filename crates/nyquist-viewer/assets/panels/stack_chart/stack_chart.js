// The stack of one thread over time.

import { h, onResize } from '../../dom.js';
import { onThemeChange } from '../../canvas.js';
import { formatPercent } from '../../format.js';
import { formatSpan } from '../../measure.js';
import { nameOf } from '../../names.js';
import { createHighlight } from '../../pattern.js';
import { rangeOf, selectRange, set } from '../../store.js';
import { selectionParams } from '../../url.js';
import { toTime } from '../../axis.js';
import { createQuestion } from '../../question.js';
import { createCanvasBox } from '../../widgets/canvas_box.js';
import { createStatus } from '../../widgets/status.js';
import { listenForDrags } from '../../widgets/drag.js';
import { listenForZoom } from '../../widgets/time_zoom.js';
import { REST_MS, foldedNames } from '../../widgets/folded_names.js';
import { functionKeys, openFunctionMenu } from '../../widgets/function_menu.js';
import { tooltipRow, tooltipTitle } from '../../widgets/tooltip.js';
import { drawAxis } from '../timeline/draw.js';
import { threadDetails, threadNames } from '../timeline/tracks.js';
import { drawChart, drawChartMarks } from './draw.js';
import { ROW, boxAt, levelsInSight, rowsOf } from './layout.js';

/** @typedef {import('../../store.js').State} State */
/** @typedef {import('./layout.js').Box} Box */

/** The height of the time axis above the boxes. */
const AXIS = 19;

export class StackChart {
  /** @param {import('../../context.js').Context} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.status = createStatus(ctx.store);
    this.question = createQuestion('stack-chart', this.status);
    this.highlight = createHighlight();
    this.title = h('span', { class: 'tools-title' });
    this.note = h('span', { class: 'tools-note' });
    this.axis = h('canvas', { class: 'axis', 'aria-hidden': 'true' });
    this.brush = h('div', { class: 'brush', hidden: true });
    this.box = createCanvasBox({ class: 'flame-scroller chart-scroller', 'aria-label': 'Stack chart' }, h('div', { class: 'chart-axis' }, this.axis));
    this.element = h('section', { class: 'panel stack-chart' }, h('div', { class: 'panel-tools' }, this.title, this.note),
      h('div', { class: 'panel-body' }, h('div', { class: 'chart-box' }, this.box.scroller, this.brush), this.status.element));
    /** @type {Box[][]} */
    this.rows = [];
    /** What boxes that are too narrow show together. @type {Box[][]} */
    this.joined = [];
    this.depth = 0;
    /** What is shown, whichever levels are in sight. */
    this.about = '';
    /** @type {Box | null} */
    this.hovered = null;
    this.start = ctx.info.start_ns;
    this.end = ctx.info.end_ns;
    this.scheduled = false;
    this.timer = 0;
    this.listen();
  }

  listen() {
    const { scroller } = this.box;
    scroller.addEventListener('scroll', () => {
      this.schedule();
      this.update(this.ctx.store.get());
    }, { passive: true });
    scroller.addEventListener('pointermove', (event) => this.onMove(event));
    scroller.addEventListener('pointerleave', () => this.onLeave());
    scroller.addEventListener('dblclick', (event) => this.zoom(this.under(event)));
    scroller.addEventListener('contextmenu', (event) => this.onContextMenu(event));
    listenForDrags(scroller, {
      area: () => this.box.canvas,
      preview: (_, from, to) => this.preview(from, to),
      cancel: () => { this.brush.hidden = true; },
      select: (_, from, to) => this.selectRange(this.timeAt(from), this.timeAt(to)),
      click: (_, event) => this.select(this.under(event)),
    });
    listenForZoom(scroller, this.ctx, () => this.box.canvas);
    onResize(scroller, () => {
      this.resize();
      this.update(this.ctx.store.get());
    });
    onThemeChange(() => this.draw());
  }

  /** @param {State} state */
  update(state) {
    const { threads } = this.ctx.info;
    const thread = threads.find((one) => one.thread === state.threads[0]) ?? threads[0];
    if (!thread) return this.status.nothing();
    this.highlight.search(state.search);
    this.title.textContent = threadNames(this.ctx.info).get(thread.thread) ?? '';
    this.title.title = threadDetails(thread);
    const which = state.threads.length === 0 ? 'the busiest thread' : 'the first selected thread';
    this.note.textContent = state.threads.length === 1 ? '' : `${which}; another is chosen in the timeline`;
    this.schedule();
    this.ask(state, thread.thread);
  }

  /**
   * @param {State} state
   * @param {number} thread
   */
  ask(state, thread) {
    const width = this.box.canvas.clientWidth;
    if (width === 0) return;
    const params = selectionParams(state, { threads: false });
    params.set('thread', String(thread));
    params.set('width', String(Math.ceil(width / 100) * 100));
    const about = params.toString();
    const { scrollTop, clientHeight } = this.box.scroller;
    const { first, levels } = levelsInSight(scrollTop, clientHeight);
    params.set('first_level', String(first));
    params.set('levels', String(levels));
    this.question.ask('chart', params, (/** @type {import('../../api.js').Chart} */ answer, again) => {
      this.rows = rowsOf(answer.boxes);
      this.joined = rowsOf(answer.joined);
      [this.start, this.end] = rangeOf(state) ?? [answer.start_ns, answer.end_ns];
      this.hovered = null;
      this.depth = answer.depth;
      this.resize();
      if (!again && about !== this.about) this.box.scroller.scrollTop = 0;
      this.about = about;
      if (answer.depth === 0) this.status.nothing();
    });
  }

  picture() {
    return { rows: this.rows, joined: this.joined, start: this.start, end: this.end, scroll: this.box.scroller.scrollTop };
  }

  mark() {
    drawChartMarks(this.box.marks, this.picture(), { hovered: this.hovered, fn: this.ctx.store.get().fn });
  }

  draw() {
    this.scheduled = false;
    const { color } = this.ctx.store.get();
    drawAxis(this.axis, this.start, this.end, this.ctx.info.start_ns);
    drawChart(this.box.canvas, { ...this.picture(), color, categories: this.ctx.info.categories.map((one) => one.color), matches: this.highlight.matches() });
    this.mark();
  }

  schedule() {
    if (!this.scheduled) requestAnimationFrame(() => this.draw());
    this.scheduled = true;
  }

  resize() {
    this.box.fit(this.depth * ROW + 2, AXIS);
    this.draw();
  }

  /** @param {number} x */
  timeAt(x) {
    return toTime({ start: this.start, end: this.end, width: this.box.canvas.clientWidth }, x);
  }

  /** @param {MouseEvent} event */
  under(event) {
    const { left, top } = this.box.canvas.getBoundingClientRect();
    const depth = Math.floor((event.clientY - top + this.box.scroller.scrollTop) / ROW);
    const time = this.timeAt(event.clientX - left);
    return boxAt(this.rows, depth, time) ?? boxAt(this.joined, depth, time);
  }

  /** @param {Box | null} box */
  select(box) {
    if (box) this.ctx.store.update(set, { fn: box.fn });
  }

  /** @param {Box | null} box */
  zoom(box) {
    if (box) this.selectRange(Math.max(this.start, box.start), Math.min(this.end, box.end));
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  selectRange(from, to) {
    if (to > from) this.ctx.store.update(selectRange, /** @type {[number, number]} */ ([Math.floor(from), Math.ceil(to)]));
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  preview(from, to) {
    this.brush.hidden = false;
    this.brush.style.left = `${from}px`;
    this.brush.style.width = `${to - from}px`;
    this.brush.textContent = formatSpan(this.timeAt(to) - this.timeAt(from));
  }

  /** @param {PointerEvent} event */
  onMove(event) {
    const box = this.under(event);
    if (box !== this.hovered) requestAnimationFrame(() => this.mark());
    this.hovered = box;
    const { tooltip, info } = this.ctx;
    if (!box || event.pointerType === 'touch' || !this.brush.hidden) return tooltip.hide();
    const name = nameOf(box.fn);
    const lines = () => [
      tooltipTitle(name.text.slice(0, 600)), ...(name.lib === null ? [] : [tooltipRow('in', name.lib)]),
      tooltipRow('from', formatSpan(box.start - info.start_ns)), tooltipRow('for', formatSpan(box.end - box.start)),
      ...(box.eighths === null ? [] : [tooltipRow('covered', `up to ${formatPercent(box.eighths, 8)}`), 'Calls too short to be drawn; this one has most of the time']),
    ];
    tooltip.show(event.clientX, event.clientY, lines());
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      const folded = await foldedNames(box.fn);
      if (folded === null || this.hovered !== box || tooltip.element.hidden) return;
      tooltip.show(event.clientX, event.clientY, [...lines(), tooltipRow('same code as', folded)]);
    }, REST_MS);
  }

  onLeave() {
    clearTimeout(this.timer);
    this.hovered = null;
    this.ctx.tooltip.hide();
    this.mark();
  }

  /** @param {MouseEvent} event */
  onContextMenu(event) {
    const box = this.under(event);
    if (!box) return;
    event.preventDefault();
    this.select(box);
    openFunctionMenu(this.ctx, { fn: box.fn, path: null, inverted: false }, event.clientX, event.clientY);
  }

  focus() {
    this.box.scroller.focus({ preventScroll: true });
  }

  /** @returns {import('../../keys.js').Key[]} */
  keys() {
    return functionKeys(this.ctx, () => {
      const { fn } = this.ctx.store.get();
      return fn === null ? null : { fn, path: null, inverted: false };
    });
  }
}
