// Markers as bars over time: a row for each kind of each thread.

import { ask } from '../../api.js';
import { h, onResize } from '../../dom.js';
import { fitText, onThemeChange, surface, theme } from '../../canvas.js';
import { groupBox, groupLine, shadeOf } from '../../color.js';
import { clean, formatCounted, formatTime } from '../../format.js';
import { rangeOf, selectRange, set } from '../../store.js';
import { selectionParams } from '../../url.js';
import { toTime, toX } from '../../axis.js';
import { createQuestion } from '../../question.js';
import { createCanvasBox } from '../../widgets/canvas_box.js';
import { createStatus } from '../../widgets/status.js';
import { listenForDrags } from '../../widgets/drag.js';
import { listenForZoom } from '../../widgets/time_zoom.js';
import { tooltipRow, tooltipTitle } from '../../widgets/tooltip.js';
import { drawAxis } from '../timeline/draw.js';
import { framesOf } from '../timeline/hover.js';
import { threadNames } from '../timeline/tracks.js';
import { LABEL, LANE, at, heightOf, place, visiblePart } from './layout.js';

/** @typedef {import('../../store.js').State} State */
/** @typedef {import('../../api.js').MarkerChart} Chart */

/** How long the pointer must rest before a stack is requested. */
const REST_MS = 80;

/** The height of the time axis. */
const AXIS = 19;

export class MarkerChart {
  /** @param {import('../../context.js').Context} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.status = createStatus(ctx.store);
    this.question = createQuestion('marker-chart', this.status);
    this.note = h('span', { class: 'tools-note' });
    this.axis = h('canvas', { class: 'axis', 'aria-hidden': 'true' });
    this.brush = h('div', { class: 'brush', hidden: true });
    this.box = createCanvasBox({ class: 'flame-scroller chart-scroller', 'aria-label': 'Marker chart' }, h('div', { class: 'chart-axis' }, this.axis));
    this.element = h('section', { class: 'panel marker-chart' }, h('div', { class: 'panel-tools' }, this.note),
      h('div', { class: 'panel-body' }, h('div', { class: 'chart-box' }, this.box.scroller, this.brush), this.status.element));
    /** @type {import('./layout.js').PlacedRow[]} */
    this.rows = [];
    this.start = ctx.info.start_ns;
    this.end = ctx.info.end_ns;
    this.timer = 0;
    this.listen();
  }

  listen() {
    const { scroller } = this.box;
    scroller.addEventListener('scroll', () => requestAnimationFrame(() => this.draw()), { passive: true });
    scroller.addEventListener('pointermove', (event) => this.onMove(event));
    scroller.addEventListener('pointerleave', () => {
      clearTimeout(this.timer);
      this.ctx.tooltip.hide();
    });
    listenForDrags(scroller, {
      area: () => this.box.canvas,
      preview: (_, from, to) => this.preview(from, to),
      cancel: () => { this.brush.hidden = true; },
      select: (_, from, to) => this.ctx.store.update(selectRange, [toTime(this.scale(), from), toTime(this.scale(), to)]),
      click: (_, event) => this.select(event),
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
    const width = this.box.canvas.clientWidth;
    if (width === 0) return;
    const params = selectionParams(state, { filters: false });
    if (state.search !== '') params.set('search', state.search);
    if (state.kind !== null) params.set('kind', state.kind);
    params.set('width', String(Math.ceil(width / 100) * 100));
    this.question.ask('markers/chart', params, (/** @type {Chart} */ answer) => {
      this.rows = place(answer.rows);
      [this.start, this.end] = rangeOf(state) ?? [answer.start_ns, answer.end_ns];
      const left = answer.left_out > 0 ? `; ${formatCounted(answer.left_out, 'more row')}` : '';
      this.note.textContent = answer.count === 0 ? '' : `${formatCounted(answer.count, 'marker')}${left}. A row is a kind of a thread; drag to select a range.`;
      this.resize();
      if (answer.count === 0) this.status.message('There are no markers in this selection.');
    });
  }

  scale() {
    return { start: this.start, end: this.end, width: this.box.canvas.clientWidth };
  }

  resize() {
    this.box.fit(heightOf(this.rows), AXIS);
    this.draw();
  }

  draw() {
    drawAxis(this.axis, this.start, this.end, this.ctx.info.start_ns);
    const target = surface(this.box.canvas);
    if (!target) return;
    const colors = theme();
    target.ctx.font = colors.font;
    target.ctx.textBaseline = 'middle';
    const scroll = this.box.scroller.scrollTop;
    for (const placed of this.rows) {
      if (placed.top + placed.height > scroll && placed.top < scroll + target.height) this.drawRow(target, placed, placed.top - scroll, colors);
    }
  }

  /**
   * @param {import('../../canvas.js').Surface} target
   * @param {import('./layout.js').PlacedRow} placed
   * @param {number} top
   * @param {import('../../canvas.js').Theme} colors
   */
  drawRow({ ctx, width }, { row, height }, top, colors) {
    const scale = { ...this.scale(), width };
    ctx.fillStyle = colors.line;
    ctx.fillRect(0, top + height - 1, width, 1);
    const name = clean(row.name, 100);
    const fill = groupBox(row.name, colors.dark, shadeOf(row.name));
    const edge = groupLine(row.name, colors.dark);
    for (const [lane, start, end, , text] of row.bars) {
      const x = toX(scale, start);
      const wide = Math.max(2, toX(scale, end) - x);
      ctx.fillStyle = wide <= 3 ? edge : fill;
      ctx.fillRect(x, top + LABEL + lane * LANE + 1, wide > 4 ? wide - 0.5 : wide, LANE - 1);
      ctx.fillStyle = colors.text;
      const label = visiblePart(x, wide, width);
      if (label.space > 28) ctx.fillText(fitText(ctx, clean(text, 200) || name, label.space - 7), label.start + 3, top + LABEL + lane * LANE + LANE / 2 + 1);
    }
    ctx.fillStyle = colors.dim;
    ctx.fillText(fitText(ctx, `${threadNames(this.ctx.info).get(row.thread) ?? row.thread} · ${name}`, Math.min(500, width - 8)), 4, top + LABEL / 2 + 1);
  }

  /** @param {MouseEvent} event */
  under(event) {
    const { left, top, width } = this.box.canvas.getBoundingClientRect();
    const time = toTime(this.scale(), event.clientX - left);
    return at(this.rows, event.clientY - top + this.box.scroller.scrollTop, time, (this.end - this.start) / Math.max(1, width));
  }

  /** @param {PointerEvent} event */
  onMove(event) {
    clearTimeout(this.timer);
    const found = this.under(event);
    if (!found || event.pointerType === 'touch') return this.ctx.tooltip.hide();
    const { row, bar } = found;
    const said = [tooltipTitle(clean(row.name, 200)), tooltipRow('thread', threadNames(this.ctx.info).get(row.thread) ?? String(row.thread))];
    if (bar) {
      const [, start, end, count, text] = bar;
      said.push(tooltipRow('at', formatTime(start - this.ctx.info.start_ns)), tooltipRow(count > 1 ? 'all of them' : 'takes', end > start ? formatTime(end - start) : '–'));
      if (count > 1) said.push(tooltipRow('markers', formatCounted(count, 'marker')));
      if (text !== '') said.push(h('div', {}, clean(text, 400)));
    }
    const show = (/** @type {(Node | string)[]} */ more) => this.ctx.tooltip.show(event.clientX, event.clientY, [...said, ...more]);
    show([]);
    const stack = bar?.[5] ?? null;
    if (stack !== null) this.timer = setTimeout(() => void this.showStack(stack, show), REST_MS);
  }

  /**
   * Shows the stack of a marker in the tooltip.
   * @param {number} stack
   * @param {(lines: (Node | string)[]) => void} show
   */
  async showStack(stack, show) {
    const { event } = this.ctx.store.get();
    const params = new URLSearchParams({ stack: String(stack), ...(event === null ? {} : { event }) });
    /** @type {import('../../api.js').Moment | null} */
    const answer = await ask('marker-tooltip', 'stack', params).catch(() => null);
    if (answer && !this.ctx.tooltip.element.hidden) show(framesOf(answer, 'Its stack'));
  }

  /** @param {MouseEvent} event */
  select(event) {
    const found = this.under(event);
    if (found) this.ctx.store.update(set, { tab: 'markers', kind: found.row.name });
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  preview(from, to) {
    this.brush.hidden = false;
    this.brush.style.left = `${from}px`;
    this.brush.style.width = `${to - from}px`;
    this.brush.textContent = formatTime(toTime(this.scale(), to) - toTime(this.scale(), from));
  }
}
