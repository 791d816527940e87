// The heat map: seconds from left to right, the time within each second from bottom to top. It shows activity
// that changes within seconds.

import { fill, h, onResize } from '../../dom.js';
import { onThemeChange, surface, theme } from '../../canvas.js';
import { formatPercent } from '../../format.js';
import { formatAmount, formatSpan, isShareOfTime, measureName } from '../../measure.js';
import { selectRange } from '../../store.js';
import { selectionParams } from '../../url.js';
import { createQuestion } from '../../question.js';
import { createStatus } from '../../widgets/status.js';
import { tooltipRow } from '../../widgets/tooltip.js';
import { ticks } from '../../axis.js';
import { columnWidth, cellAt, columnsOf, heatOf, rangeOfCells } from './cells.js';

/** @typedef {import('../../store.js').State} State */
/** @typedef {import('../../api.js').HeatMap} Map */

export class HeatMap {
  /** @param {import('../../context.js').Context} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.status = createStatus(ctx.store);
    this.question = createQuestion('heat-map', this.status);
    /** @type {Map | null} */
    this.map = null;
    /** @type {number | null} */
    this.from = null;
    this.to = 0;
    this.note = h('span', { class: 'tools-note' });
    this.legend = h('span', { class: 'heat-legend', 'aria-hidden': 'true' }, 'none', h('i', {}), h('span'));
    this.canvas = h('canvas', { class: 'heat-canvas', role: 'img', 'aria-label': 'Heat map by second and by offset within the second' });
    this.axis = h('canvas', { class: 'heat-axis', 'aria-hidden': 'true' });
    this.offsets = h('div', { class: 'heat-offsets', 'aria-hidden': 'true' });
    this.tools = h('div', { class: 'panel-tools' }, this.legend, this.note);
    this.element = h('section', { class: 'panel heat-map' }, this.tools,
      h('div', { class: 'panel-body' }, this.offsets, this.canvas, this.axis, this.status.element));
    this.listen();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || !this.map) return;
      this.from = this.to = this.cell(event);
      canvas.setPointerCapture(event.pointerId);
      this.draw();
    });
    canvas.addEventListener('pointermove', (event) => this.onMove(event));
    canvas.addEventListener('pointerup', () => this.select());
    canvas.addEventListener('pointercancel', () => this.forget());
    canvas.addEventListener('pointerleave', () => this.ctx.tooltip.hide());
    onResize(canvas, () => this.draw());
    onThemeChange(() => this.draw());
  }

  /** @param {State} state */
  update(state) {
    const params = selectionParams(state);
    params.set('rows', '50');
    this.question.ask('heatmap', params, (/** @type {Map} */ answer) => {
      this.map = answer;
      this.describe(answer);
      this.forget();
      this.tools.hidden = answer.cells.every((ns) => ns === 0);
      if (this.tools.hidden) this.status.nothing();
    });
  }

  /**
   * Shows what columns, cells and colours mean.
   * @param {Map} map
   */
  describe(map) {
    const column = map.column_ns === 1e9 ? 'a second' : formatSpan(map.column_ns);
    this.note.textContent = `A column is ${column}, a cell ${formatSpan(map.row_ns)} of it, from the bottom to the top. Drag from a cell to another to select the time between.`;
    const most = Math.max(0, ...map.cells.slice(0, 100_000));
    if (this.legend.lastElementChild) this.legend.lastElementChild.textContent = this.amount(most);
    fill(this.offsets, ...[1, 0.5, 0].map((part) => h('span', {}, part === 0 ? '0' : formatSpan(map.column_ns * part))));
  }

  /**
   * The amount of a cell: CPUs in use, or things.
   * @param {number} value
   */
  amount(value) {
    const { row_ns: row } = /** @type {Map} */ (this.map);
    if (!isShareOfTime()) return `${formatAmount(value)} ${measureName()}`;
    const noun = this.ctx.store.get().time === 'running' && measureName() === 'CPU time' ? 'CPU' : 'thread';
    return value > row ? `${(value / row).toFixed(1)} ${noun}s` : `${formatPercent(value, row)} of a ${noun}`;
  }

  /** @param {PointerEvent} event */
  cell(event) {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    return cellAt(/** @type {Map} */ (this.map), { width, height }, event.clientX - left, event.clientY - top);
  }

  /** @param {PointerEvent} event */
  onMove(event) {
    if (!this.map) return;
    const cell = this.cell(event);
    if (this.from !== null && cell !== this.to) {
      this.to = cell;
      this.draw();
    }
    const [start, end] = rangeOfCells(this.map, this.from ?? cell, cell);
    const value = this.from === null ? tooltipRow('in use', this.amount(this.map.cells[cell] ?? 0)) : tooltipRow('selects', formatSpan(end - start));
    this.ctx.tooltip.show(event.clientX, event.clientY, [tooltipRow('from', formatSpan(start - this.ctx.info.start_ns)), value]);
  }

  select() {
    if (this.from === null || !this.map) return;
    const range = rangeOfCells(this.map, this.from, this.to);
    this.forget();
    this.ctx.store.update(selectRange, range);
  }

  forget() {
    this.from = null;
    this.draw();
  }

  draw() {
    const target = surface(this.canvas);
    if (!target || !this.map) return;
    const { ctx, width, height } = target;
    const { rows, cells } = this.map;
    const { accent, line } = theme();
    const most = Math.max(...cells.slice(0, 100_000));
    const size = { x: columnWidth(this.map, width), y: height / rows };
    const gap = size.x > 6 ? 1 : 0;
    const color = getComputedStyle(document.documentElement).getPropertyValue('--heat-color').trim().replaceAll(' ', ',');
    const [low, high] = this.from === null ? [-1, -1] : [Math.min(this.from, this.to), Math.max(this.from, this.to)];
    cells.forEach((ns, cell) => {
      const x = Math.floor(cell / rows) * size.x;
      const y = height - ((cell % rows) + 1) * size.y;
      const heat = heatOf(ns, most);
      ctx.fillStyle = cell >= low && cell <= high ? accent : heat > 0 ? `rgba(${color},${heat.toFixed(3)})` : line;
      ctx.globalAlpha = heat > 0 || (cell >= low && cell <= high) ? 1 : 0.35;
      ctx.fillRect(x, y, size.x - gap, Math.max(0.5, size.y - (size.y > 3 ? 0.5 : 0)));
    });
    ctx.globalAlpha = 1;
    this.drawAxis(width);
  }

  /**
   * Draws the axis of the columns below them.
   * @param {number} width
   */
  drawAxis(width) {
    const target = surface(this.axis);
    if (!target || !this.map) return;
    const { dim, line, font } = theme();
    const used = columnWidth(this.map, width) * columnsOf(this.map);
    const { start_ns: start, column_ns: column } = this.map;
    target.ctx.font = font;
    target.ctx.textBaseline = 'middle';
    for (const { x, label } of ticks({ start, end: start + column * columnsOf(this.map), width: used }, this.ctx.info.start_ns, Math.max(90, columnWidth(this.map, width)))) {
      target.ctx.fillStyle = line;
      target.ctx.fillRect(Math.round(x), 0, 1, 6);
      target.ctx.fillStyle = dim;
      if (x + 8 < width) target.ctx.fillText(label, Math.round(x) + 4, target.height / 2 + 1);
    }
  }
}
