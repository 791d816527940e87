// The heat map: seconds from left to right, the time within each second from bottom to top. It shows activity
// that changes within seconds.

import { h, onResize } from '../../dom.js';
import { onThemeChange, surface, theme } from '../../canvas.js';
import { formatPercent, formatTime } from '../../format.js';
import { selectRange } from '../../store.js';
import { selectionParams } from '../../url.js';
import { createQuestion } from '../../question.js';
import { createStatus } from '../../widgets/status.js';
import { tooltipRow } from '../../widgets/tooltip.js';
import { cellAt, columnWidth, heatOf, rangeOfCells } from './cells.js';

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
    this.canvas = h('canvas', { class: 'flame-canvas heat-canvas', role: 'img', 'aria-label': 'Heat map of CPU use by second and offset' });
    this.element = h('section', { class: 'panel heat-map' }, h('div', { class: 'panel-tools' }, this.note),
      h('div', { class: 'panel-body' }, this.canvas, this.status.element));
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
      const column = answer.column_ns === 1e9 ? 'a second' : formatTime(answer.column_ns);
      this.note.textContent = `Each column is ${column}, each cell ${formatTime(answer.row_ns)} of it, from the bottom to the top. Drag from a cell to another to select the time between.`;
      this.forget();
      if (answer.cells.every((ns) => ns === 0)) this.status.nothing();
    });
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
    const value = this.from === null ? tooltipRow('CPUs in use', formatPercent(this.map.cells[cell] ?? 0, this.map.row_ns)) : tooltipRow('selects', formatTime(end - start));
    this.ctx.tooltip.show(event.clientX, event.clientY, [tooltipRow('from', formatTime(start - this.ctx.info.start_ns)), value]);
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
  }
}
