// The flame graph: asks for the boxes, and says what the pointer and the keys do with them.

import { h, onResize } from '../../dom.js';
import { onThemeChange } from '../../canvas.js';
import { formatPercent, formatTime } from '../../format.js';
import { nameOf } from '../../names.js';
import { matcher } from '../../pattern.js';
import { set, transform } from '../../store.js';
import { parentsOf } from '../../transforms.js';
import { selectionParams } from '../../url.js';
import { createQuestion } from '../../question.js';
import { createStatus } from '../../widgets/status.js';
import { byKeyboard, functionKeys, openFunctionMenu } from '../../widgets/function_menu.js';
import { tooltipRow, tooltipTitle } from '../../widgets/tooltip.js';
import { drawFlame, drawMarks } from './draw.js';
import { boxAt, boxOfPath, layoutOf, neighbour, pathOf } from './layout.js';
import { createTools } from './tools.js';
import { ROW, contentHeight, rowAt, rowTop, scrollTo } from './view.js';

/** @typedef {import('./layout.js').Box} Box */
/** @typedef {import('../../store.js').State} State */

/**
 * @param {import('../../context.js').Context} ctx
 * @returns {import('../../context.js').Panel}
 */
export function createFlameGraph(ctx) {
  const { store, info, tooltip } = ctx;
  const categories = info.categories.map(({ color }) => color);
  const status = createStatus(store);
  const question = createQuestion('flame-graph', status);
  const canvas = h('canvas', { class: 'flame-canvas' });
  const marks = h('canvas', { class: 'flame-canvas' });
  const frame = h('div', { class: 'flame-window' }, canvas, marks);
  const space = h('div');
  const scroller = h('div', { class: 'flame-scroller', tabindex: '0', role: 'application', 'aria-label': 'Flame graph' }, frame, space);
  const tools = createTools(store);
  const said = h('div', { class: 'unseen', 'aria-live': 'polite' });
  const element = h('section', { class: 'panel flame' }, tools.element, h('div', { class: 'panel-body' }, scroller, status.element), said);

  let layout = layoutOf([], 0);
  let interval = info.interval_ns;
  /** @type {{fn: number, list: string[]}[]} */
  let parents = [];
  /** @type {Box | null} */
  let hovered = null;
  /** @type {Box | null} */
  let selected = null;
  /** @type {((fn: number) => boolean) | null} */
  let matches = null;
  let searched = '';
  let scheduled = false;
  /** The function of the last click: the second click of a double click is about it. */
  let clicked = -1;

  const view = () => ({
    icicle: store.get().icicle, parents: parents.length, depth: layout.rows.length, height: scroller.clientHeight, scroll: scroller.scrollTop,
  });
  const mark = () => {
    drawMarks(marks, { layout, parents: parents.map(({ fn }) => fn), view: view() }, { hovered, selected });
  };
  const draw = () => {
    scheduled = false;
    drawFlame(canvas, { layout, parents: parents.map(({ fn }) => fn), view: view(), color: store.get().color, categories, matches });
    mark();
  };
  const schedule = () => {
    if (!scheduled) requestAnimationFrame(draw);
    scheduled = true;
  };
  /** @param {boolean} home whether to scroll to the roots */
  const resize = (home) => {
    const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 2;
    frame.style.height = `${scroller.clientHeight}px`;
    space.style.height = `${contentHeight(view()) - scroller.clientHeight}px`;
    if (home || atEnd) scroller.scrollTop = store.get().icicle ? (home ? 0 : scroller.scrollTop) : scroller.scrollHeight;
    draw();
  };
  /** @param {State} state */
  const search = (state) => {
    if (state.search === searched) return;
    searched = state.search;
    const test = matcher(searched);
    /** @type {Map<number, boolean>} */
    const known = new Map();
    matches = searched === '' ? null : (fn) => {
      const found = known.get(fn) ?? test(nameOf(fn).raw);
      known.set(fn, found);
      return found;
    };
  };
  /** @param {State} state */
  const ask = (state) => {
    const width = canvas.clientWidth;
    if (width === 0) return;
    const params = selectionParams(state);
    params.set('width', String(Math.ceil(width / 100) * 100));
    if (state.inverted) params.set('inverted', '1');
    question.ask('flamegraph', params, (/** @type {import('../../api.js').FlameGraph} */ answer) => {
      const path = selected ? pathOf(selected) : [];
      layout = layoutOf(answer.boxes, answer.weight);
      interval = answer.interval_ns;
      parents = parentsOf(state.transforms, state.inverted);
      hovered = null;
      selected = boxOfPath(layout, path) ?? layout.rows[0]?.find(({ fn }) => fn === store.get().fn) ?? null;
      if (answer.weight === 0) status.nothing();
      resize(true);
    });
  };
  let icicle = store.get().icicle;
  /** @param {State} state */
  const update = (state) => {
    tools.update(state);
    search(state);
    ask(state);
    if (icicle !== state.icicle) resize(true);
    icicle = state.icicle;
    schedule();
  };

  /**
   * What is at a place of the window: a box, or one of the parents.
   * @param {MouseEvent} event
   */
  const under = (event) => {
    const { left, top, width } = canvas.getBoundingClientRect();
    const row = rowAt(view(), event.clientY - top);
    const box = boxAt(layout, row - parents.length, ((event.clientX - left) / width) * layout.weight);
    return { box, parent: row >= 0 ? parents[row] ?? null : null };
  };
  /** @param {Box} box */
  const targetOf = (box) => ({ fn: box.fn, path: pathOf(box), inverted: store.get().inverted });
  /** @param {Box | null} box */
  const select = (box) => {
    if (!box) return;
    selected = box;
    said.textContent = `${nameOf(box.fn).text.slice(0, 200)}, ${formatPercent(box.width, layout.weight)}`;
    scroller.scrollTop = scrollTo(view(), parents.length + box.depth);
    store.update(set, { fn: box.fn });
    schedule();
  };
  /** @param {Box} box */
  const zoom = (box) => {
    const { inverted } = store.get();
    if (box.depth === 0 && box.width === layout.weight) return select(box);
    selected = null;
    store.update((state) => transform(set(state, { fn: box.fn }), `${inverted ? 'focus-inverted-subtree' : 'focus-subtree'}:${pathOf(box).join('.')}`));
  };
  /** @param {string} key */
  const move = (key) => {
    const { icicle: down } = store.get();
    const ways = /** @type {const} */ ({ ArrowUp: down ? 'out' : 'in', ArrowDown: down ? 'in' : 'out', ArrowLeft: 'left', ArrowRight: 'right' });
    scroller.focus({ preventScroll: true });
    select(neighbour(layout, selected, ways[/** @type {keyof typeof ways} */ (key)]) ?? selected);
  };
  const targetOfSelected = () => (selected ? targetOf(selected) : null);

  scroller.addEventListener('scroll', schedule, { passive: true });
  scroller.addEventListener('pointermove', (event) => {
    const { box, parent } = under(event);
    if (box !== hovered) requestAnimationFrame(mark);
    hovered = box;
    frame.style.cursor = box || parent ? 'pointer' : '';
    if (event.pointerType === 'touch' || (!box && !parent)) return tooltip.hide();
    tooltip.show(event.clientX, event.clientY, box ? describe(box, layout.weight, interval) : [nameOf(parent?.fn ?? null).text.slice(0, 600), 'Click to zoom out to it']);
  });
  scroller.addEventListener('pointerleave', () => {
    hovered = null;
    tooltip.hide();
    mark();
  });
  scroller.addEventListener('click', (event) => {
    const { box, parent } = under(event);
    tooltip.hide();
    if (event.detail === 2 && clicked >= 0) return openFunctionMenu(ctx, { fn: clicked, path: null, inverted: false }, event.clientX, event.clientY);
    clicked = box?.fn ?? -1;
    if (parent) store.update(set, { transforms: parent.list });
    else if (box) zoom(box);
  });
  scroller.addEventListener('contextmenu', (event) => {
    const byKey = byKeyboard(event) && selected !== null;
    const box = byKey ? selected : under(event).box;
    if (!box) return;
    event.preventDefault();
    const { left, top, width } = canvas.getBoundingClientRect();
    const [x, y] = byKey ? [left + (box.start / layout.weight) * width + 20, top + rowTop(view(), parents.length + box.depth) + ROW] : [event.clientX, event.clientY];
    select(box);
    openFunctionMenu(ctx, targetOf(box), x, y);
  });
  onResize(scroller, () => {
    resize(false);
    ask(store.get());
  });
  onThemeChange(draw);
  return {
    element,
    update,
    focus: () => scroller.focus({ preventScroll: true }),
    keys: () => [
      { keys: ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight'], text: 'Move the selected box', run: move },
      { keys: ['Enter'], text: 'Zoom into the selected box', run: () => selected && zoom(selected) },
      { keys: ['x'], text: 'Roots on top or at the bottom', run: () => store.update((state) => set(state, { icicle: !state.icicle })) },
      ...functionKeys(ctx, targetOfSelected),
    ],
  };
}

/**
 * @param {Box} box
 * @param {number} weight
 * @param {number} interval
 */
function describe(box, weight, interval) {
  const name = nameOf(box.fn);
  const amount = (/** @type {number} */ value) => `${formatTime(value * interval)}  ${formatPercent(value, weight)}`;
  return [
    tooltipTitle(name.text.slice(0, 600)), ...(name.lib === null ? [] : [tooltipRow('in', name.lib)]),
    tooltipRow('total', amount(box.width)), tooltipRow('self', amount(box.own)),
  ];
}
