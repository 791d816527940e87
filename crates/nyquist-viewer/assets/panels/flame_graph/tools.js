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
  return {
    element: h('div', { class: 'panel-tools' }, order.element, shape.element, color.element),
    /** @param {State} state */
    update(state) {
      order.press(state.inverted ? 1 : 0);
      shape.press(state.icicle ? 1 : 0);
      color.press(['module', 'lib', 'category', 'change'].indexOf(state.color));
    },
  };
}
