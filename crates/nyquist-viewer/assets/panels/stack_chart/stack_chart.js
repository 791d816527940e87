// The stack of one thread over time.

import { h, onResize } from '../../dom.js';
import { onThemeChange } from '../../canvas.js';
import { formatTime } from '../../format.js';
import { nameOf } from '../../names.js';
import { matcher } from '../../pattern.js';
import { rangeOf, selectRange, set } from '../../store.js';
import { selectionParams } from '../../url.js';
import { toTime } from '../../axis.js';
import { createQuestion } from '../../question.js';
import { createStatus } from '../../widgets/status.js';
import { listenForDrags } from '../../widgets/drag.js';
import { functionKeys, openFunctionMenu } from '../../widgets/function_menu.js';
import { tooltipRow, tooltipTitle } from '../../widgets/tooltip.js';
import { drawAxis } from '../timeline/draw.js';
import { threadDetails, threadName } from '../timeline/tracks.js';
import { ROW, drawChart, drawChartMarks } from './draw.js';
import { boxAt, rowsOf } from './layout.js';

/** @typedef {import('../../store.js').State} State */
/** @typedef {import('./layout.js').Box} Box */

/** The height of the time axis above the boxes. */
const AXIS = 19;

/**
 * @param {import('../../context.js').Context} ctx
 * @returns {import('../../context.js').Panel}
 */
export function createStackChart(ctx) {
  const { store, info, tooltip } = ctx;
  const categories = info.categories.map(({ color }) => color);
  const status = createStatus(store);
  const question = createQuestion('stack-chart', status);
  const title = h('span', { class: 'tools-title' });
  const note = h('span', { class: 'tools-note' });
  const axis = h('canvas', { class: 'axis', 'aria-hidden': 'true' });
  const canvas = h('canvas', { class: 'flame-canvas' });
  const marks = h('canvas', { class: 'flame-canvas' });
  const frame = h('div', { class: 'flame-window' }, canvas, marks);
  const space = h('div');
  const brush = h('div', { class: 'brush', hidden: true });
  const scroller = h('div', { class: 'flame-scroller chart-scroller', tabindex: '0', role: 'application', 'aria-label': 'Stack chart', 'data-area': '' },
    h('div', { class: 'chart-axis' }, axis), frame, space);
  const element = h('section', { class: 'panel stack-chart' }, h('div', { class: 'panel-tools' }, title, note),
    h('div', { class: 'panel-body' }, h('div', { class: 'chart-box' }, scroller, brush), status.element));

  /** @type {Box[][]} */
  let rows = [];
  /** @type {Box | null} */
  let hovered = null;
  let start = info.start_ns;
  let end = info.end_ns;
  let scheduled = false;

  const mark = () => drawChartMarks(marks, { rows, start, end, scroll: scroller.scrollTop }, { hovered, fn: store.get().fn });
  const draw = () => {
    scheduled = false;
    const { color, search } = store.get();
    const test = matcher(search);
    drawAxis(axis, start, end, info.start_ns);
    drawChart(canvas, {
      rows, start, end, scroll: scroller.scrollTop, color, categories, matches: search === '' ? null : (one) => test(nameOf(one).raw),
    });
    mark();
  };
  const schedule = () => {
    if (!scheduled) requestAnimationFrame(draw);
    scheduled = true;
  };
  const resize = () => {
    const height = Math.max(0, scroller.clientHeight - AXIS);
    frame.style.height = `${height}px`;
    space.style.height = `${Math.max(0, rows.length * ROW + 2 - height)}px`;
    draw();
  };
  /** @param {State} state */
  const threadOf = (state) => info.threads.find(({ thread }) => thread === state.threads[0]) ?? info.threads[0];
  /** @param {State} state */
  const update = (state) => {
    const thread = threadOf(state);
    if (!thread) return status.nothing();
    title.textContent = threadName(thread);
    title.title = threadDetails(thread);
    note.textContent = state.threads.length === 1 ? '' : `${state.threads.length === 0 ? 'the busiest thread' : 'the first selected thread'}; another is chosen in the timeline`;
    schedule();
    const width = canvas.clientWidth;
    if (width === 0) return;
    const params = selectionParams(state);
    params.delete('threads');
    params.set('thread', String(thread.thread));
    params.set('width', String(Math.ceil(width / 100) * 100));
    question.ask('chart', params, (/** @type {import('../../api.js').Chart} */ answer) => {
      rows = rowsOf(answer.boxes);
      [start, end] = rangeOf(state) ?? [answer.start_ns, answer.end_ns];
      hovered = null;
      scroller.scrollTop = 0;
      resize();
      if (answer.boxes.length === 0) status.nothing();
    });
  };

  const scaleOf = () => ({ start, end, width: canvas.clientWidth });
  const under = (/** @type {MouseEvent} */ event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return boxAt(rows, Math.floor((event.clientY - top + scroller.scrollTop) / ROW), toTime(scaleOf(), event.clientX - left));
  };
  const select = (/** @type {Box | null} */ box) => {
    if (box) store.update(set, { fn: box.fn });
  };
  scroller.addEventListener('scroll', schedule, { passive: true });
  scroller.addEventListener('pointermove', (event) => {
    const box = under(event);
    if (box !== hovered) requestAnimationFrame(mark);
    hovered = box;
    if (!box || event.pointerType === 'touch' || !brush.hidden) return tooltip.hide();
    const name = nameOf(box.fn);
    tooltip.show(event.clientX, event.clientY, [
      tooltipTitle(name.text.slice(0, 600)), ...(name.lib === null ? [] : [tooltipRow('in', name.lib)]),
      tooltipRow('from', formatTime(box.start - info.start_ns)), tooltipRow('for', formatTime(box.end - box.start)),
    ]);
  });
  scroller.addEventListener('pointerleave', () => {
    hovered = null;
    tooltip.hide();
    mark();
  });
  listenForDrags(scroller, {
    area: () => canvas,
    preview: (_, from, to) => {
      brush.hidden = false;
      brush.style.left = `${from}px`;
      brush.style.width = `${to - from}px`;
      brush.textContent = formatTime(((end - start) * (to - from)) / canvas.clientWidth);
    },
    cancel: () => { brush.hidden = true; },
    select: (_, from, to) => store.update(selectRange, /** @type {[number, number]} */ ([toTime(scaleOf(), from), toTime(scaleOf(), to)])),
    click: (_, event) => select(under(event)),
  });
  scroller.addEventListener('dblclick', (event) => {
    const box = under(event);
    if (box) store.update(selectRange, /** @type {[number, number]} */ ([Math.max(start, box.start), Math.min(end, box.end)]));
  });
  scroller.addEventListener('contextmenu', (event) => {
    const box = under(event);
    if (!box) return;
    event.preventDefault();
    select(box);
    openFunctionMenu(ctx, { fn: box.fn, path: null, inverted: false }, event.clientX, event.clientY);
  });
  onResize(scroller, () => {
    resize();
    update(store.get());
  });
  onThemeChange(draw);
  return {
    element,
    update,
    focus: () => scroller.focus({ preventScroll: true }),
    keys: () => functionKeys(ctx, () => {
      const { fn } = store.get();
      return fn === null ? null : { fn, path: null, inverted: false };
    }),
  };
}
