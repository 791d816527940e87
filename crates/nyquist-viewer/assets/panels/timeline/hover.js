// The timeline's tooltip: the time, the running code and, after a rest on a thread, its stack at that time.

import { ask } from '../../api.js';
import { h } from '../../dom.js';
import { clean, formatPercent, shorten } from '../../format.js';
import { formatAmount, formatSpan, isShareOfTime } from '../../measure.js';
import { nameOf } from '../../names.js';
import { toTime } from '../../axis.js';
import { tooltipRow, tooltipTitle } from '../../widgets/tooltip.js';
import { at } from './graph.js';

/** How long the pointer must rest before the stack is requested, and the number of functions shown. */
const REST_MS = 60;
const SHOWN_FRAMES = 12;

/** @typedef {{scale: import('../../axis.js').Scale, layers: import('./graph.js').Layer[], mark: Float64Array | null, thread: number | null, title: string, part: number}} Under `part` is the time of a part of the graph */

/**
 * @param {HTMLElement} element
 * @param {import('../../context.js').Context} ctx
 * @param {(area: HTMLElement) => Under} look the target under the pointer
 * @param {(area: HTMLElement, x: number, time: number) => (Node | string)[] | null} sayCounter the text of a counter's track; null for others
 */
export function createHover(element, ctx, look, sayCounter) {
  let timer = 0;
  const stop = () => {
    clearTimeout(timer);
    ctx.tooltip.hide();
  };
  element.addEventListener('pointermove', (event) => {
    clearTimeout(timer);
    const area = event.target instanceof Element ? event.target.closest('[data-area]') : null;
    if (!(area instanceof HTMLElement) || event.pointerType === 'touch') return stop();
    const [x, show] = [event.clientX - area.getBoundingClientRect().left, (/** @type {(Node | string)[]} */ said) => ctx.tooltip.show(event.clientX, event.clientY, said)];
    const under = look(area);
    const time = toTime(under.scale, x);
    const since = time - ctx.info.start_ns;
    if (area.querySelector('.axis')) return show([formatSpan(since)]);
    const counter = sayCounter(area, x, since);
    if (counter) return show(counter);
    const said = lines(ctx, under, x, since);
    show(said);
    const { thread } = under;
    if (thread === null || ctx.offline) return;
    timer = setTimeout(() => void stackLines(ctx, thread, time).then((more) => more.length > 0 && show([...said, ...more]), () => undefined), REST_MS);
  });
  element.addEventListener('pointerleave', stop);
}

/**
 * The stack of a thread at a moment.
 * @param {import('../../context.js').Context} ctx
 * @param {number} thread
 * @param {number} time
 */
async function stackLines({ store }, thread, time) {
  const { event } = store.get();
  /** @type {import('../../api.js').Moment} */
  const moment = await ask('moment', 'moment', new URLSearchParams({ thread: String(thread), time: String(time), ...(event === null ? {} : { event }) }));
  return moment.frames.length === 0 ? [] : framesOf(moment, moment.is_waiting ? 'It waits in' : 'It runs');
}

/**
 * The innermost functions of a stack, for a tooltip.
 * @param {import('../../api.js').Moment} moment
 * @param {string} title
 * @returns {(Node | string)[]}
 */
export function framesOf(moment, title) {
  const frames = moment.frames.slice(0, SHOWN_FRAMES).map((fn) => h('div', { class: 'tooltip-frame' }, shorten(nameOf(fn).short, 60)));
  const left = moment.depth - frames.length;
  return [h('div', { class: 'tooltip-head' }, title), ...frames, ...(left > 0 ? [`called by ${left} more`] : [])];
}

/**
 * @param {import('../../context.js').Context} ctx
 * @param {Under} under
 * @param {number} x
 * @param {number} time
 */
function lines(ctx, { layers, mark, scale, title, part: length }, x, time) {
  const text = (/** @type {number} */ height) => (isShareOfTime() ? formatPercent(height, 1) : formatAmount((height * length) / 1e9));
  const parts = layers[0]?.high.length ?? 1;
  const part = Math.max(0, Math.min(parts - 1, Math.floor((x / scale.width) * parts)));
  const rows = at(layers, part).map(({ category, height }) => tooltipRow(clean(ctx.info.categories[category]?.name ?? '?', 60), text(height)));
  const { fn, search } = ctx.store.get();
  const marked = search !== '' ? `“${clean(search, 40)}”` : fn !== null ? shorten(nameOf(fn).short, 40) : null;
  if (mark && marked !== null) rows.push(tooltipRow(marked, text(mark[part] ?? 0)));
  return [tooltipTitle(title), tooltipRow('at', formatSpan(time)), ...(rows.length > 0 ? rows : ['nothing'])];
}
