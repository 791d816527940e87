// The actions on a function: one list for the menu and for the keys.

import { libOf, nameOf } from '../names.js';
import { set, transform } from '../store.js';

/**
 * @typedef {object} Target
 * @property {number} fn
 * @property {number[] | null} path the functions from the root of the shown tree; null outside of trees
 * @property {boolean} inverted whether that tree is inverted
 */

/**
 * @param {import('../context.js').Context} ctx
 * @param {Target} target
 * @returns {import('./menu.js').MenuItem[]}
 */
function functionActions(ctx, target) {
  const { store } = ctx;
  const step = (/** @type {string} */ kind, /** @type {string} */ label, /** @type {string} */ key) => ({
    label, key, run: () => store.update(transform, `${kind}:${target.fn}`),
  });
  /** @type {import('./menu.js').MenuItem[]} */
  const items = [];
  if (target.path) {
    const kind = target.inverted ? 'focus-inverted-subtree' : 'focus-subtree';
    const value = target.path.join('.');
    items.push({ label: 'Zoom into this subtree', key: 'F', run: () => store.update(transform, `${kind}:${value}`) });
  }
  const { offline } = ctx;
  const { libNumber } = nameOf(target.fn);
  const collapse = () => libNumber !== null && store.update(transform, `collapse-lib:${libNumber}`);
  if (!offline) items.push(
    step('focus-function', 'Focus on the function', 'f'),
    step('focus-self', 'Focus on its self time', 'S'),
    step('merge-function', 'Hide the function (its time goes to its callers)', 'm'),
    step('drop-function', 'Drop samples with it', 'd'),
    step('collapse-recursion', 'Collapse recursion', 'r'),
    step('collapse-subtree', 'Collapse what it calls', 'c'),
    { label: libNumber === null ? 'Collapse its library' : `Collapse the library ${libOf(libNumber).slice(0, 60)}`, key: 'l', run: collapse },
    'line',
  );
  items.push(
    { label: 'Show callers and callees', key: 'g', run: () => store.update(set, { tab: 'functions', fn: target.fn }) },
    ...(offline ? [] : [{ label: 'Show source', key: 'o', run: () => store.update(set, { tab: 'source', fn: target.fn }) }]),
    'line',
    { label: 'Copy name', key: 'y', run: () => void copy(nameOf(target.fn).raw) },
  );
  return items;
}

/**
 * The same actions as keys, for the selection in a panel.
 * @param {import('../context.js').Context} ctx
 * @param {() => Target | null} selected
 * @returns {import('../keys.js').Key[]}
 */
export function functionKeys(ctx, selected) {
  const sample = functionActions(ctx, { fn: 0, path: [0], inverted: false });
  return sample.flatMap((item, index) => {
    if (item === 'line' || !item.key) return [];
    const run = () => {
      const target = selected();
      if (!target) return;
      const action = functionActions(ctx, target).at(index - sample.length);
      if (action && action !== 'line' && action.key === item.key) action.run();
    };
    return [{ keys: [item.key], text: item.label, run }];
  });
}

/**
 * @param {import('../context.js').Context} ctx
 * @param {Target} target
 * @param {number} x
 * @param {number} y
 */
export function openFunctionMenu(ctx, target, x, y) {
  ctx.tooltip.hide();
  ctx.menu.open(x, y, nameOf(target.fn).text.slice(0, 300), functionActions(ctx, target));
}

/**
 * Whether the keyboard opened a context menu, which is then about the selection.
 * @param {MouseEvent} event
 */
export function byKeyboard(event) {
  return event.button !== 2 && !(event instanceof PointerEvent && event.pointerType !== '');
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement('textarea');
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
  }
}
