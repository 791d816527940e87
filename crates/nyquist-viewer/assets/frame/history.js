// Keeps the page's address and the state in sync, so that back, forward and reload work.

import { set } from '../store.js';
import { fromQuery, toQuery } from '../url.js';

/** @typedef {import('../store.js').State} State */

/**
 * Whether a change is a step that "back" undoes. Typing and hovering are not.
 * @param {State} state
 * @param {State} before
 */
export function isStep(state, before) {
  const follows = state.tab === 'functions' || state.tab === 'source';
  const quiet = { search: '', ...(follows ? {} : { fn: null }) };
  return toQuery(set(state, quiet)) !== toQuery(set(before, quiet));
}

/** Functions and ranges that keys or the wheel pass more quickly than this are one step. */
const PASSING_MS = 600;

/** @param {import('../store.js').Store} store */
export function keepHistory(store) {
  let byHistory = false;
  let lastStep = -Infinity;
  store.subscribe((state, before) => {
    const query = toQuery(state);
    if (byHistory || query === location.search) return;
    const address = query === '' ? location.pathname : query;
    const rest = { fn: null, ranges: [] };
    const passing = performance.now() - lastStep < PASSING_MS && !isStep(set(state, rest), set(before, rest));
    const step = isStep(state, before);
    if (step) lastStep = performance.now();
    try {
      if (step && !passing) history.pushState(null, '', address);
      else history.replaceState(null, '', address);
    } catch {
      // Some browsers do not let a page from a disk change its address.
    }
  });
  addEventListener('popstate', () => {
    byHistory = true;
    store.update(() => fromQuery(location.search));
    byHistory = false;
  });
}
