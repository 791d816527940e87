// The quantity that the profile's samples measure: CPU time, or bytes, objects, events; and what its axis of times
// counts. They are the same for the whole page.

import { formatBytes, formatCount, formatShortTime, formatTick, formatTime } from './format.js';

/** @typedef {{name: string, unit: string}} Measure */

/** @type {Measure} */
let measure = { name: 'CPU time', unit: 'ns' };
let axisIsAmount = false;

/**
 * Sets the quantity; called when the profile is known, and when another event is shown.
 * @param {Measure} stated
 * @param {boolean} [isAxis] whether the axis counts the quantity, too, because the file has no times
 */
export function setMeasure(stated, isAxis = false) {
  measure = stated;
  axisIsAmount = isAxis;
}

export const measureName = () => measure.name;

/** Whether the quantity is time, so that amounts have a place on the timeline. */
export const countsTime = () => measure.unit === 'ns';

/** Whether the height of the timeline is a number of CPUs or threads, and not of things in a time. */
export const isShareOfTime = () => countsTime() || axisIsAmount;

/**
 * An amount of the quantity.
 * @param {number} amount
 * @returns {string}
 */
export function formatAmount(amount) {
  if (measure.unit === 'bytes') return formatBytes(Math.round(amount));
  return countsTime() ? formatTime(amount) : formatCount(amount);
}

/**
 * The same for a column of a table.
 * @param {number} amount
 */
export const formatCell = (amount) => (countsTime() ? formatShortTime(amount) : formatAmount(amount));

/**
 * A length on the axis of times.
 * @param {number} length
 */
export const formatSpan = (length) => (axisIsAmount ? formatAmount(length) : formatTime(length));

/** Whether the axis is one of times. */
export const axisIsTime = () => !axisIsAmount;

/**
 * The label of a tick of the axis.
 * @param {number} value
 * @param {number} step
 */
export const formatAxis = (value, step) => (axisIsAmount ? formatAmount(value) : formatTick(value, step));

/**
 * An amount in each second.
 * @param {number} amount
 */
export const formatRate = (amount) => `${formatAmount(amount)}/s`;
