// A request of a panel that is repeated only when its parameters change.

import { addressOf, ask } from './api.js';

/**
 * @typedef {object} Question
 * @property {(question: string, params: URLSearchParams, show: (answer: any, again: boolean) => void) => void} ask `again`: only the profile has changed
 * @property {() => void} forget the next request is sent even if it is the same
 */

/** What a panel waits for, by its request. @type {Record<string, string>} */
const WAITING = {
  timeline: 'Adding up the timeline', flamegraph: 'Building the flame graph', 'diff/flamegraph': 'Comparing the stacks', tree: 'Building the call tree',
  functions: 'Adding up the functions', groups: 'Adding up the functions', callers: 'Finding the callers', chart: 'Reading the stacks of the thread', heatmap: 'Adding up the heat map',
  markers: 'Reading the markers', 'markers/chart': 'Reading the markers', source: 'Reading source and instructions', diff: 'Comparing the runs', counters: 'Reading the counters',
};

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
      if (!again) status.loading(WAITING[name] ?? 'Loading');
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
