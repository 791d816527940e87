// The texts of a flame graph that is coloured by changes since another run.

import { formatChange, formatPercent } from '../../format.js';
import { tooltipRow } from '../../widgets/tooltip.js';

/**
 * The request for the boxes.
 * @param {import('../../store.js').State} state
 * @param {import('../../api.js').Info} info
 */
export const questionOf = (state, info) => (state.color === 'change' && info.before !== null ? 'diff/flamegraph' : 'flamegraph');

/**
 * The lines of a tooltip about the change of a box.
 * @param {import('./layout.js').Box} box
 * @param {number} weight of the whole
 */
export function changeRows(box, weight) {
  if (box.before === undefined || !(weight > 0)) return [];
  return [tooltipRow('share before', formatPercent(box.before, 1)), tooltipRow('change', formatChange(box.width / weight - box.before))];
}
