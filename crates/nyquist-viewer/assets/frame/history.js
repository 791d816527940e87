// Keeps the address of the page and the state the same, so that back, forward and reload work.

import { set } from '../store.js';
import { fromQuery, toQuery } from '../url.js';

/** @typedef {import('../store.js').State} State */

/**
 * Whether a change is a step that "back" undoes. Typing and pointing at things are not.
 * @param {State} state
 * @param {State} before
 */
export function isStep(state, before) {
  const follows = state.tab === 'functions' || state.tab === 'source';
  const quiet = { search: '', ...(follows ? {} : { fn: null }) };
  return toQuery(set(state, quiet)) !== toQuery(set(before, quiet));
}

/** @param {import('../store.js').Store} store */
export function keepHistory(store) {
  let byHistory = false;
  store.subscribe((state, before) => {
    const query = toQuery(state);
    if (byHistory || query === location.search) return;
    const address = query === '' ? location.pathname : query;
    if (isStep(state, before)) history.pushState(null, '', address);
    else history.replaceState(null, '', address);
  });
  addEventListener('popstate', () => {
    byHistory = true;
    store.update(() => fromQuery(location.search));
    byHistory = false;
  });
}
