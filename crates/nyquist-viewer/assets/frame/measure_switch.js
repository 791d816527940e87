// Shows another measure: the profile's samples, an event that was recorded besides, or markers.

import { ask } from '../api.js';
import { setMeasure } from '../measure.js';
import { set } from '../store.js';

/** @typedef {import('../api.js').Info} Info */
/** @typedef {import('../store.js').State} State */

/**
 * The parameters of the description of a measure.
 * @param {State} state
 */
export const paramsOfMeasure = (state) => new URLSearchParams(state.event === null ? {} : { event: state.event });

/**
 * @param {import('../context.js').Context} ctx
 * @param {() => void} update draws the page
 */
export function createMeasureSwitch({ store, info }, update) {
  let shown = store.get().event;
  return {
    /**
     * Whether the page shows the state's measure. If not, it is requested, and the page is drawn then.
     * @param {State} state
     */
    shows(state) {
      if (state.event === shown) return true;
      const { event } = state;
      ask('profile', 'info', paramsOfMeasure(state)).then((/** @type {Info} */ next) => {
        if (store.get().event !== event) return;
        shown = event;
        Object.assign(info, next);
        setMeasure(info.measure, info.axis_is_amount);
        update();
      }, (error) => {
        if (error.name !== 'AbortError') store.update(set, { event: shown });
      });
      return false;
    },
  };
}
