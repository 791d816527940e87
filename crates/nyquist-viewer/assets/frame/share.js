// Exports of the page: a picture of the flame graph, the selection as one file, the profile.

import { addressOf } from '../api.js';
import { h } from '../dom.js';
import { selectionParams } from '../url.js';
import { pictureOf } from '../panels/flame_graph/picture.js';

/** @typedef {import('../context.js').Context} Context */

/**
 * @param {Context} ctx
 * @returns {import('../widgets/menu.js').MenuItem[]}
 */
export function shareItems(ctx) {
  /** @type {import('../widgets/menu.js').MenuItem[]} */
  const items = [{ label: 'Flame graph as PNG', run: () => void savePicture(ctx) }];
  if (ctx.offline) return items;
  const save = (/** @type {string} */ question, /** @type {URLSearchParams} */ params) => () => download(addressOf(question, params), '');
  const state = ctx.store.get();
  return [
    { label: 'Flame graph as SVG', run: save('flamegraph.svg', graphParams(state)) }, ...items,
    { label: 'This selection as one HTML file', run: save('page.html', selectionParams(state)) }, 'line',
    { label: 'The profile', run: () => download('profile.json', '') },
  ];
}

/**
 * The parameters of the shown flame graph.
 * @param {import('../store.js').State} state
 */
export function graphParams(state) {
  const params = selectionParams(state);
  if (state.inverted) params.set('inverted', '1');
  if (state.icicle) params.set('icicle', '1');
  params.set('color', state.color);
  if (state.color === 'change' && state.unit === 'share') params.set('unit', 'share');
  return params;
}

/** @param {Context} ctx */
async function savePicture(ctx) {
  const blob = await pictureOf(ctx);
  if (!blob) return;
  const address = URL.createObjectURL(blob);
  download(address, 'flamegraph.png');
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/**
 * @param {string} address
 * @param {string} name empty if the server sets it
 */
function download(address, name) {
  const link = h('a', { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}
