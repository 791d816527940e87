// The quantity that the profile's samples measure: CPU time, or bytes, objects, events. It is the same for the
// whole page.

import { formatBytes, formatCount, formatTime } from './format.js';

/** @typedef {{name: string, unit: string}} Measure */

/** @type {Measure} */
let measure = { name: 'CPU time', unit: 'ns' };

/** Sets the quantity; called once, when the profile is known. @param {Measure} stated */
export function setMeasure(stated) {
  measure = stated;
}

export const measureName = () => measure.name;

/** Whether the quantity is time, so that amounts have a place on the timeline. */
export const countsTime = () => measure.unit === 'ns';

/**
 * An amount of the quantity.
 * @param {number} amount
 * @returns {string}
 */
export function formatAmount(amount) {
  if (measure.unit === 'bytes') return formatBytes(amount);
  return countsTime() ? formatTime(amount) : formatCount(amount);
}
