// The text instead of content: loading, no data, or the reason of a failure; with a next step.

import { button, fill, h } from '../dom.js';
import { clearSelection, isNarrowed, set } from '../store.js';
import { ApiError } from '../api.js';
import { noSamples } from '../emptiness.js';
import { clean } from '../format.js';
import { isRunning } from '../progress.js';

/** The delay before a panel shows that it loads, so that quick responses do not flicker. */
const PATIENCE_MS = 150;

/**
 * @typedef {object} Status
 * @property {HTMLElement} element
 * @property {(what?: string) => void} loading `what` is being done
 * @property {() => void} clear
 * @property {(text: string, ...ways: Node[]) => void} message
 * @property {() => void} nothing there are no samples
 * @property {(error: unknown, again?: () => void) => void} failed `again` repeats all failed requests
 */

/**
 * @param {import('../store.js').Store} store
 * @returns {Status}
 */
export function createStatus(store) {
  const element = h('div', { class: 'status', role: 'status', hidden: true });
  let timer = 0;
  const show = (/** @type {'loading' | 'message'} */ kind, /** @type {Node[]} */ ...content) => {
    clearTimeout(timer);
    element.className = `status status-${kind}`;
    element.hidden = false;
    fill(element, ...content);
  };
  const message = (/** @type {string} */ text, /** @type {Node[]} */ ...ways) => {
    show('message', h('p', {}, text), h('p', { class: 'status-ways' }, ...ways));
  };
  return {
    element,
    message,
    clear() {
      clearTimeout(timer);
      element.hidden = true;
    },
    loading(what = 'Loading') {
      clearTimeout(timer);
      timer = setTimeout(() => show('loading', h('p', {}, `${what}…`)), PATIENCE_MS);
    },
    nothing() {
      if (!isNarrowed(store.get())) return message(isRunning() ? 'Nothing was sampled so far.' : noSamples());
      const what = store.get().time === 'waiting' ? 'waiting time' : 'samples';
      message(`No ${what} in this selection.`, button('Clear the selection', () => store.update(clearSelection)));
    },
    failed(error, again = () => store.update((state) => ({ ...state }))) {
      const { text, ways } = explain(error, store, again);
      message(text, ...ways);
    },
  };
}

/**
 * @param {unknown} error
 * @param {import('../store.js').Store} store
 * @param {() => void} again
 */
function explain(error, store, again) {
  const retry = button('Try again', again);
  const kind = error instanceof ApiError ? error.kind : 'refused';
  if (kind === 'gone') return { text: 'The nyquist server has stopped: run “nyquist load FILE” again.', ways: [retry] };
  if (kind === 'expired') {
    return { text: 'This address is no longer valid: open the link that nyquist printed last.', ways: [retry] };
  }
  const reason = clean(error instanceof Error ? error.message : String(error), 500);
  const ways = [retry];
  if (isNarrowed(store.get())) ways.unshift(button('Clear the selection', () => store.update(clearSelection)));
  if (store.get().search !== '') ways.unshift(button('Clear the search', () => store.update(set, { search: '' })));
  return { text: `The question was refused: ${reason}.`, ways };
}
