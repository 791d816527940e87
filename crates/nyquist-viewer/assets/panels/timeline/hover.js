// What the timeline says at the pointer: the time there, and what ran.

import { clean, formatPercent, formatTime, shorten } from '../../format.js';
import { nameOf } from '../../names.js';
import { toTime } from '../../axis.js';
import { tooltipRow, tooltipTitle } from '../../widgets/tooltip.js';
import { at } from './graph.js';

/** @typedef {{scale: import('../../axis.js').Scale, layers: import('./graph.js').Layer[], mark: Float64Array | null, title: string}} Under */

/**
 * @param {HTMLElement} element
 * @param {import('../../context.js').Context} ctx
 * @param {(area: HTMLElement) => Under} look what is under the pointer
 */
export function createHover(element, ctx, look) {
  element.addEventListener('pointermove', (event) => {
    const area = event.target instanceof Element ? event.target.closest('[data-area]') : null;
    if (!(area instanceof HTMLElement) || event.pointerType === 'touch') return ctx.tooltip.hide();
    const x = event.clientX - area.getBoundingClientRect().left;
    const under = look(area);
    const time = toTime(under.scale, x) - ctx.info.start_ns;
    if (area.querySelector('.axis')) return ctx.tooltip.show(event.clientX, event.clientY, [formatTime(time)]);
    ctx.tooltip.show(event.clientX, event.clientY, lines(ctx, under, x, time));
  });
  element.addEventListener('pointerleave', () => ctx.tooltip.hide());
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
