// The changes of a flame graph's boxes since another run: by time, or by their shares of the whole.

import { formatChange, formatPercent } from '../../format.js';
import { formatAmount } from '../../measure.js';
import { tooltipRow } from '../../widgets/tooltip.js';

/** @typedef {import('./layout.js').Box} Box */
/** @typedef {import('./layout.js').Layout} Layout */
/** @typedef {import('../../store.js').State['unit']} Unit */

/**
 * The request for the boxes.
 * @param {import('../../store.js').State} state
 * @param {import('../../api.js').Info} info
 */
export const questionOf = (state, info) => (state.color === 'change' && info.before !== null ? 'diff/flamegraph' : 'flamegraph');

/**
 * The change of a box as a part of the whole, which gives its colour; null if it is not compared.
 * @param {Box} box
 * @param {Layout} layout
 * @param {Unit} unit
 */
export function changeOf(box, { weight, beforeWeight }, unit) {
  if (box.before === undefined || !(weight > 0)) return null;
  if (unit === 'share' || beforeWeight === undefined) return box.width / weight - box.before;
  return (box.width - box.before * beforeWeight) / Math.max(weight, beforeWeight);
}

/**
 * The lines of a tooltip about the change of a box.
 * @param {Box} box
 * @param {Layout} layout
 * @param {Unit} unit
 * @param {number} interval
 */
export function changeRows(box, { weight, beforeWeight }, unit, interval) {
  if (box.before === undefined || !(weight > 0)) return [];
  if (unit === 'share' || beforeWeight === undefined) {
    return [tooltipRow('share before', formatPercent(box.before, 1)), tooltipRow('change', formatChange(box.width / weight - box.before))];
  }
  const before = box.before * beforeWeight;
  const change = `${box.width < before ? '−' : '+'}${formatAmount(Math.abs(box.width - before) * interval)}`;
  return [tooltipRow('before', formatAmount(before * interval)), tooltipRow('change', before > 0 ? `${change}  ${formatChange(box.width / before - 1)}` : `${change}  new`)];
}
