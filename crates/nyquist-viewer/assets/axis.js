// The positions of times in a drawing, and the ticks of the axis. Pure.

import { axisIsTime, formatAxis } from './measure.js';

/** @typedef {{start: number, end: number, width: number}} Scale */

/**
 * @param {Scale} scale
 * @param {number} time
 */
export function toX(scale, time) {
  return ((time - scale.start) / (scale.end - scale.start)) * scale.width;
}

/**
 * The time at a position, within the scale, in whole ns.
 * @param {Scale} scale
 * @param {number} x
 */
export function toTime(scale, x) {
  const share = Math.max(0, Math.min(1, x / scale.width));
  return Math.round(scale.start + share * (scale.end - scale.start));
}

/**
 * Round times, at least `space` pixels apart, with their labels.
 * @param {Scale} scale
 * @param {number} zero the time with the label 0
 * @param {number} [space]
 * @returns {{x: number, label: string}[]}
 */
export function ticks(scale, zero, space = 90) {
  const span = scale.end - scale.start;
  if (!(span > 0) || scale.width <= 0) return [];
  const step = niceStep((span * space) / scale.width, axisIsTime());
  const out = [];
  for (let i = Math.ceil((scale.start - zero) / step); i * step <= scale.end - zero && out.length < 500; i++) {
    out.push({ x: toX(scale, zero + i * step), label: formatAxis(i * step, step) });
  }
  return out;
}

const MINUTE = 60e9;
/** Steps of long times: a minute, …, a day. */
const LONG_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440].map((minutes) => minutes * MINUTE);

/**
 * The smallest of 1, 2, 5, 10, … that is at least this. Of times, it is a round number of minutes or hours from a minute on.
 * @param {number} least
 * @param {boolean} [isTime]
 */
export function niceStep(least, isTime = false) {
  const long = isTime && least > MINUTE / 2 ? LONG_STEPS.find((step) => step >= least) : undefined;
  if (long !== undefined) return long;
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return ([1, 2, 5].find((n) => n * power >= least) ?? 10) * power;
}
