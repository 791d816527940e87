// The controls above a flame graph.

import { h } from '../../dom.js';
import { set } from '../../store.js';
import { createChoice } from '../../widgets/choice.js';

/** @typedef {import('../../store.js').State} State */

/**
 * @param {import('../../store.js').Store} store
 * @param {boolean} compares whether there is another run to compare with
 */
export function createTools(store, compares) {
  const change = (/** @type {Partial<State>} */ what) => () => store.update(set, what);
  const order = createChoice('Order', [['Callers first', change({ inverted: false })], ['Inverted', change({ inverted: true })]]);
  const shape = createChoice('Direction', [['Flame', change({ icicle: false })], ['Icicle', change({ icicle: true })]]);
  const color = createChoice('Colours', [
    ['By module', change({ color: 'module' })], ['By library', change({ color: 'lib' })], ['By category', change({ color: 'category' })],
    ...(compares ? [/** @type {[string, () => void]} */ (['By change', change({ color: 'change' })])] : []),
  ]);
  const unit = createChoice('What is compared', [['Times', change({ unit: 'ns' })], ['Shares of the whole', change({ unit: 'share' })]]);
  const legend = h('span', { class: 'tools-note' });
  return {
    element: h('div', { class: 'panel-tools' }, order.element, shape.element, color.element, unit.element, legend),
    /** @param {State} state */
    update(state) {
      order.press(state.inverted ? 1 : 0);
      shape.press(state.icicle ? 1 : 0);
      unit.press(state.unit === 'ns' ? 0 : 1);
      unit.element.hidden = legend.hidden = !compares || state.color !== 'change';
      legend.textContent = state.unit === 'ns' ? 'Red takes more than before, blue less' : 'Red is a larger share of the whole than before, blue a smaller one';
      color.press(['module', 'lib', 'category', 'change'].indexOf(state.color));
    },
  };
}
