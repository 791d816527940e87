// The timeline's tooltip: the time, the running code and, after a rest on a thread, its stack at that time.

import { ask } from '../../api.js';
import { h } from '../../dom.js';
import { clean, formatPercent, formatTime, shorten } from '../../format.js';
import { nameOf } from '../../names.js';
import { toTime } from '../../axis.js';
import { tooltipRow, tooltipTitle } from '../../widgets/tooltip.js';
import { at } from './graph.js';

/** How long the pointer must rest before the stack is requested, and the number of functions shown. */
const REST_MS = 60;
const SHOWN_FRAMES = 12;

/** @typedef {{scale: import('../../axis.js').Scale, layers: import('./graph.js').Layer[], mark: Float64Array | null, thread: number | null, title: string}} Under */

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
    if (area.querySelector('.axis')) return show([formatTime(since)]);
    const counter = sayCounter(area, x, since);
    if (counter) return show(counter);
    const said = lines(ctx, under, x, since);
    show(said);
    const { thread } = under;
    if (thread === null || ctx.offline) return;
    timer = setTimeout(() => void stackLines(thread, time).then((more) => more.length > 0 && show([...said, ...more]), () => undefined), REST_MS);
  });
  element.addEventListener('pointerleave', stop);
}

/**
 * The stack of a thread at a moment.
 * @param {number} thread
 * @param {number} time
 */
async function stackLines(thread, time) {
  /** @type {import('../../api.js').Moment} */
  const moment = await ask('moment', 'moment', new URLSearchParams({ thread: String(thread), time: String(time) }));
  if (moment.frames.length === 0) return [];
  const frames = moment.frames.slice(0, SHOWN_FRAMES).map((fn) => h('div', { class: 'tooltip-frame' }, shorten(nameOf(fn).text, 60)));
  const left = moment.depth - frames.length;
  return [h('div', { class: 'tooltip-head' }, moment.is_waiting ? 'It waits in' : 'It runs'), ...frames, ...(left > 0 ? [`called by ${left} more`] : [])];
}

/**
 * @param {import('../../context.js').Context} ctx
 * @param {Under} under
 * @param {number} x
 * @param {number} time
 */
function lines(ctx, { layers, mark, scale, title }, x, time) {
  const parts = layers[0]?.high.length ?? 1;
  const part = Math.max(0, Math.min(parts - 1, Math.floor((x / scale.width) * parts)));
  const rows = at(layers, part).map(({ category, cpus }) => tooltipRow(clean(ctx.info.categories[category]?.name ?? '?', 60), formatPercent(cpus, 1)));
  const { fn } = ctx.store.get();
  if (mark && fn !== null) rows.push(tooltipRow(shorten(nameOf(fn).text, 40), formatPercent(mark[part] ?? 0, 1)));
  return [tooltipTitle(title), tooltipRow('at', formatTime(time)), ...(rows.length > 0 ? rows : ['nothing ran'])];
}
