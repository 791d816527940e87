// A request of a panel that is repeated only when its parameters change.

import { addressOf, ask } from './api.js';

/**
 * @typedef {object} Question
 * @property {(question: string, params: URLSearchParams, show: (answer: any, again: boolean) => void) => void} ask `again`: only the profile has changed
 * @property {() => void} forget the next request is sent even if it is the same
 */

/**
 * @param {string} panel
 * @param {import('./widgets/status.js').Status} status
 * @returns {Question}
 */
export function createQuestion(panel, status) {
  let shown = '';
  let plain = '';
  return {
    /**
     * @param {string} name
     * @param {URLSearchParams} params
     * @param {(answer: any, again: boolean) => void} show
     */
    ask(name, params, show) {
      const address = addressOf(name, params);
      if (address === shown) return;
      // The shown response stays until the one about the newer profile is received.
      const again = shown !== '' && plain === `${name}?${params}`;
      shown = address;
      plain = `${name}?${params}`;
      if (!again) status.loading();
      ask(panel, name, params).then(
        (answer) => {
          if (address !== shown) return;
          status.clear();
          show(answer, again);
        },
        (error) => {
          if (address !== shown || error.name === 'AbortError') return;
          shown = '';
          status.failed(error);
        },
      );
    },
    forget() {
      shown = '';
    },
  };
}
