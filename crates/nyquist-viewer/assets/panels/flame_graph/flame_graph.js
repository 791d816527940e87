// The flame graph: requests the boxes, and defines the actions of the pointer and the keys on them.

import { ask } from '../../api.js';
import { button, h, onResize } from '../../dom.js';
import { onThemeChange } from '../../canvas.js';
import { formatCounted, formatPercent } from '../../format.js';
import { formatAmount } from '../../measure.js';
import { nameOf, onNewNames } from '../../names.js';
import { createHighlight } from '../../pattern.js';
import { set, transform } from '../../store.js';
import { parentsOf } from '../../transforms.js';
import { selectionParams } from '../../url.js';
import { createQuestion } from '../../question.js';
import { createCanvasBox } from '../../widgets/canvas_box.js';
import { createStatus } from '../../widgets/status.js';
import { REST_MS, foldedNames } from '../../widgets/folded_names.js';
import { byKeyboard, functionKeys, openFunctionMenu } from '../../widgets/function_menu.js';
import { tooltipRow, tooltipTitle } from '../../widgets/tooltip.js';
import { drawFlame, drawMarks } from './draw.js';
import { changeRows, questionOf } from './change.js';
import { boxAt, boxOfPath, layoutOf, neighbour, pathOf } from './layout.js';
import { createTools } from './tools.js';
import { ROW, contentHeight, rowAt, rowTop, rowsBeyond, scrollTo } from './view.js';

/** @typedef {import('./layout.js').Box} Box */
/** @typedef {import('../../store.js').State} State */

export class FlameGraph {
  /** @param {import('../../context.js').Context} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.status = createStatus(ctx.store);
    this.question = createQuestion('flame-graph', this.status);
    this.tools = createTools(ctx.store, ctx.info.before !== null);
    this.highlight = createHighlight();
    this.layout = layoutOf([], 0);
    this.interval = ctx.info.interval_ns;
    /** @type {{fn: number, list: string[]}[]} */
    this.parents = [];
    /** @type {Box | null} */
    this.hovered = null;
    /** @type {Box | null} */
    this.selected = null;
    this.icicle = ctx.store.get().icicle;
    this.scheduled = false;
    /** The function of the last click, which the second click of a double click refers to. */
    this.clicked = -1;
    this.timer = 0;
    this.box = createCanvasBox({ class: 'flame-scroller', 'aria-label': 'Flame graph' });
    this.beyond = button('', () => this.scrollOn(), { class: 'flame-beyond', hidden: true });
    this.said = h('div', { class: 'unseen', 'aria-live': 'polite' });
    this.element = h('section', { class: 'panel flame' }, this.tools.element,
      h('div', { class: 'panel-body' }, this.box.scroller, this.beyond, this.status.element), this.said);
    this.listen();
  }

  listen() {
    const { scroller } = this.box;
    scroller.addEventListener('scroll', () => this.schedule(), { passive: true });
    scroller.addEventListener('pointermove', (event) => this.onMove(event));
    scroller.addEventListener('pointerleave', () => this.onLeave());
    scroller.addEventListener('click', (event) => this.onClick(event));
    scroller.addEventListener('contextmenu', (event) => this.onContextMenu(event));
    onResize(this.box.scroller, () => {
      this.resize(false);
      this.ask(this.ctx.store.get());
    });
    onThemeChange(() => this.draw());
    onNewNames(() => this.schedule());
  }

  /** @param {State} state */
  update(state) {
    this.tools.update(state);
    this.highlight.search(state.search);
    this.ask(state);
    if (this.icicle !== state.icicle) this.resize(true);
    this.icicle = state.icicle;
    this.schedule();
  }

  /** @param {State} state */
  ask(state) {
    const width = this.box.canvas.clientWidth;
    if (width === 0) return;
    const params = selectionParams(state);
    params.set('width', String(Math.ceil(width / 100) * 100));
    if (state.inverted) params.set('inverted', '1');
    this.question.ask(questionOf(state, this.ctx.info), params, (answer, again) => this.show(answer, state, again));
  }

  /**
   * @param {import('../../api.js').FlameGraph} answer
   * @param {State} state the requested state
   * @param {boolean} again of a newer profile
   */
  show(answer, state, again) {
    const path = this.selected ? pathOf(this.selected) : [];
    const { fn } = this.ctx.store.get();
    this.layout = layoutOf(answer.boxes, answer.weight, answer.before_weight);
    this.interval = answer.interval_ns;
    this.parents = parentsOf(state.transforms, state.inverted);
    this.hovered = null;
    this.selected = boxOfPath(this.layout, path) ?? this.layout.rows[0]?.find((box) => box.fn === fn) ?? null;
    if (answer.weight === 0) this.status.nothing();
    this.resize(!again);
  }

  view() {
    return {
      icicle: this.ctx.store.get().icicle, parents: this.parents.length, depth: this.layout.rows.length,
      height: this.box.scroller.clientHeight, scroll: this.box.scroller.scrollTop,
    };
  }

  picture() {
    return { layout: this.layout, parents: this.parents.map(({ fn }) => fn), view: this.view() };
  }

  mark() {
    drawMarks(this.box.marks, this.picture(), { hovered: this.hovered, selected: this.selected });
  }

  draw() {
    this.scheduled = false;
    const { color, unit } = this.ctx.store.get();
    drawFlame(this.box.canvas, { ...this.picture(), color, unit, categories: this.ctx.info.categories.map((one) => one.color), matches: this.highlight.matches() });
    this.mark();
    this.showBeyond();
  }

  /** Shows the number of rows out of sight, because nothing else shows that there are some. */
  showBeyond() {
    const rows = rowsBeyond(this.view());
    const { icicle } = this.ctx.store.get();
    this.beyond.hidden = rows === 0;
    this.beyond.classList.toggle('at-end', icicle);
    this.beyond.textContent = `${icicle ? '↓' : '↑'} ${formatCounted(rows, 'more row')}`;
  }

  /** Scrolls towards the callees by a window. */
  scrollOn() {
    const { scroller } = this.box;
    scroller.scrollTop += (scroller.clientHeight - 2 * ROW) * (this.ctx.store.get().icicle ? 1 : -1);
  }

  schedule() {
    if (!this.scheduled) requestAnimationFrame(() => this.draw());
    this.scheduled = true;
  }

  /** @param {boolean} home whether to scroll to the roots */
  resize(home) {
    const { scroller } = this.box;
    const { icicle } = this.ctx.store.get();
    const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 2;
    this.box.fit(contentHeight(this.view()));
    if (icicle && home) scroller.scrollTop = 0;
    if (!icicle && (home || atEnd)) scroller.scrollTop = scroller.scrollHeight;
    this.draw();
  }

  /**
   * The target at a position in the window: a box, or one of the callers above the root.
   * @param {MouseEvent} event
   */
  under(event) {
    const { left, top, width } = this.box.canvas.getBoundingClientRect();
    const row = rowAt(this.view(), event.clientY - top);
    const box = boxAt(this.layout, row - this.parents.length, ((event.clientX - left) / width) * this.layout.weight);
    return { box, parent: row >= 0 ? this.parents[row] ?? null : null };
  }

  /** @param {Box | null} box */
  select(box) {
    if (!box) return;
    this.selected = box;
    this.said.textContent = `${nameOf(box.fn).text.slice(0, 200)}, ${formatPercent(box.width, this.layout.weight)}`;
    this.box.scroller.scrollTop = scrollTo(this.view(), this.parents.length + box.depth);
    this.ctx.store.update(set, { fn: box.fn });
    this.schedule();
  }

  /** @param {Box} box */
  zoom(box) {
    if (box.depth === 0 && box.width === this.layout.weight) return this.select(box);
    this.selected = null;
    const kind = this.ctx.store.get().inverted ? 'focus-inverted-subtree' : 'focus-subtree';
    const path = pathOf(box).join('.');
    this.ctx.store.update((state) => transform(set(state, { fn: box.fn }), `${kind}:${path}`));
  }

  /** @param {PointerEvent} event */
  onMove(event) {
    const { box, parent } = this.under(event);
    if (box !== this.hovered) requestAnimationFrame(() => this.mark());
    this.hovered = box;
    this.box.frame.style.cursor = box || parent ? 'pointer' : '';
    const { tooltip } = this.ctx;
    if (event.pointerType === 'touch' || (!box && !parent)) return tooltip.hide();
    clearTimeout(this.timer);
    if (box) this.timer = setTimeout(() => void this.showAllCalls(box, event), REST_MS);
    tooltip.show(event.clientX, event.clientY, box ? this.describe(box) : [nameOf(parent?.fn ?? null).text.slice(0, 600), 'Click to zoom out to it']);
  }

  /**
   * Adds the function's other names, and its amounts in all of its calls, to the tooltip of one of them.
   * @param {Box} box
   * @param {PointerEvent} event
   */
  async showAllCalls(box, event) {
    const params = selectionParams(this.ctx.store.get());
    params.set('function', String(box.fn));
    /** @type {[import('../../api.js').Callers | null, string | null]} */
    const [answer, folded] = await Promise.all([ask('flame-tooltip', 'callers', params).catch(() => null), foldedNames(box.fn)]);
    const { tooltip } = this.ctx;
    if (this.hovered !== box || tooltip.element.hidden) return;
    const { self: own, total } = answer?.function ?? { self: 0, total: 0 };
    tooltip.show(event.clientX, event.clientY, [...this.describe(box), ...(folded === null ? [] : [tooltipRow('same code as', folded)]),
      ...(total > box.width ? [tooltipRow('in all calls', this.amount(total)), tooltipRow('self in all', this.amount(own))] : [])]);
  }

  onLeave() {
    clearTimeout(this.timer);
    this.hovered = null;
    this.ctx.tooltip.hide();
    this.mark();
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const { box, parent } = this.under(event);
    this.ctx.tooltip.hide();
    if (event.detail === 2 && this.clicked >= 0) {
      return openFunctionMenu(this.ctx, { fn: this.clicked, path: null, inverted: false }, event.clientX, event.clientY);
    }
    this.clicked = box?.fn ?? -1;
    if (parent) this.ctx.store.update(set, { transforms: parent.list, fn: parent.fn });
    else if (box) this.zoom(box);
  }

  /** @param {MouseEvent} event */
  onContextMenu(event) {
    const byKey = byKeyboard(event) && this.selected !== null;
    const box = byKey ? this.selected : this.under(event).box;
    if (!box) return;
    event.preventDefault();
    this.select(box);
    const [x, y] = byKey ? this.placeOf(box) : [event.clientX, event.clientY];
    openFunctionMenu(this.ctx, this.targetOf(box), x, y);
  }

  /**
   * The position for the menu of a box when the keyboard opens it.
   * @param {Box} box
   * @returns {[number, number]}
   */
  placeOf(box) {
    const { left, top, width } = this.box.canvas.getBoundingClientRect();
    return [left + (box.start / this.layout.weight) * width + 20, top + rowTop(this.view(), this.parents.length + box.depth) + ROW];
  }

  /** @param {Box} box */
  targetOf(box) {
    return { fn: box.fn, path: pathOf(box), inverted: this.ctx.store.get().inverted };
  }

  /** @param {string} key */
  move(key) {
    const { icicle } = this.ctx.store.get();
    const ways = /** @type {const} */ ({ ArrowUp: icicle ? 'out' : 'in', ArrowDown: icicle ? 'in' : 'out', ArrowLeft: 'left', ArrowRight: 'right' });
    this.focus();
    this.select(neighbour(this.layout, this.selected, ways[/** @type {keyof typeof ways} */ (key)]) ?? this.selected);
  }

  focus() {
    this.box.scroller.focus({ preventScroll: true });
  }

  /** @returns {import('../../keys.js').Key[]} */
  keys() {
    const { store } = this.ctx;
    return [
      { keys: ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight'], text: 'Move the selected box', run: (key) => this.move(key) },
      { keys: ['Enter'], text: 'Zoom into the selected box', run: () => this.selected && this.zoom(this.selected) },
      { keys: ['x'], text: 'Roots on top or at the bottom', run: () => store.update((state) => set(state, { icicle: !state.icicle })) },
      ...functionKeys(this.ctx, () => (this.selected ? this.targetOf(this.selected) : null)),
    ];
  }

  /** @param {number} value */
  amount(value) {
    return `${formatAmount(value * this.interval)}  ${formatPercent(value, this.layout.weight)}`;
  }

  /** @param {Box} box */
  describe(box) {
    const name = nameOf(box.fn);
    return [
      tooltipTitle(name.text.slice(0, 600)), ...(name.lib === null ? [] : [tooltipRow('in', name.lib)]),
      tooltipRow('total', this.amount(box.width)), tooltipRow('self', this.amount(box.own)), ...changeRows(box, this.layout, this.ctx.store.get().unit, this.interval),
    ];
  }
}
