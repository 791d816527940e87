// The amounts of threads in the selection, beside their names. Threads that are not selected have theirs, too.

import { ask } from '../../api.js';
import { selectionParams } from '../../url.js';

/** @typedef {import('../../api.js').Thread} Thread */
/** @typedef {import('../../api.js').Info} Info */
/** @typedef {{of: (thread: Thread) => Thread, whole: number}} Amounts `whole` is the weight of all threads */

/** @param {import('../../context.js').Context} ctx */
export function createThreadAmounts({ info }) {
  /** Whether other amounts than those of the whole profile are shown. */
  let narrowed = false;
  return {
    /**
     * @param {import('../../store.js').State} state
     * @param {(amounts: Amounts) => void} show
     */
    ask(state, show) {
      const params = selectionParams(state, { threads: false });
      if (params.size === 0 || (params.size === 1 && params.has('event'))) {
        if (narrowed) show({ of: (thread) => thread, whole: info.summary.weight });
        narrowed = false;
        return;
      }
      narrowed = true;
      ask('thread-amounts', 'info', params).then((/** @type {Info} */ answer) => {
        const found = new Map([...answer.threads, ...answer.cores].map((thread) => [thread.thread, thread]));
        show({ of: (thread) => found.get(thread.thread) ?? { ...thread, weight: 0 }, whole: answer.summary.weight });
      }, () => undefined);
    },
  };
}
