// The stack of the selected marker, from the innermost function on. Each row leads to its function.

import { ask } from '../../api.js';
import { button, fill, h } from '../../dom.js';
import { nameOf } from '../../names.js';
import { set } from '../../store.js';

/** @typedef {import('../../api.js').Moment} Stack */

/** @param {import('../../context.js').Context} ctx */
export function createMarkerStack({ store, offline }) {
  const list = h('ol', { class: 'marker-stack-list' });
  const element = h('aside', { class: 'marker-stack', 'aria-label': 'Stack of the marker', hidden: true }, h('h2', {}, 'Stack of the marker'), list);
  /** @type {number | null} */
  let shown = null;
  const row = (/** @type {number} */ fn) => {
    const name = nameOf(fn);
    return h('li', {}, button(name.text.slice(0, 400), () => store.update(set, { tab: 'functions', fn }), { title: name.text.slice(0, 1000) }),
      name.lib === null ? null : h('span', { class: 'lib' }, name.lib));
  };
  return {
    element,
    /** @param {number | null} stack its number */
    show(stack) {
      shown = offline ? null : stack;
      element.hidden = shown === null;
      if (shown === null) return;
      const { event } = store.get();
      ask('marker-stack', 'stack', new URLSearchParams({ stack: String(shown), ...(event === null ? {} : { event }) })).then((/** @type {Stack} */ answer) => {
        if (shown !== stack) return;
        const left = answer.depth - answer.frames.length;
        fill(list, ...answer.frames.map(row), left > 0 ? h('li', { class: 'tools-note' }, `${left} more`) : null);
      }, () => { element.hidden = true; });
    },
  };
}
