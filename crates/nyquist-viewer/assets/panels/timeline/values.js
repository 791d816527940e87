// The values of counters as text, and their positions in a track. Pure.

import { clean, formatBytes, formatCount, formatTime } from '../../format.js';

/**
 * The part of a graph at a position.
 * @param {number} parts
 * @param {number} x
 * @param {number} width
 */
export const partAt = (parts, x, width) => Math.max(0, Math.min(parts - 1, Math.floor((x / width) * parts)));

/**
 * Where a level is highest: the middle of the first such part, as a share of the width. None where it never changes.
 * @param {{values: number[], is_level: boolean}} counter
 */
export function peakOf({ values, is_level: isLevel }) {
  const highest = Math.max(...values);
  if (!isLevel || !(highest > Math.min(...values))) return null;
  return { value: highest, share: (values.indexOf(highest) + 0.5) / values.length };
}

/**
 * A level is unchanged; an amount that was added in a part of the time becomes a rate.
 * @param {{unit: string, is_level: boolean}} counter
 * @param {number} value
 * @param {number} partNs
 */
export function valueText({ unit, is_level: isLevel }, value, partNs) {
  return isLevel ? amountText(unit, value) : `${amountText(unit, partNs > 0 ? (value * 1e9) / partNs : 0)}/s`;
}

/**
 * @param {string} unit
 * @param {number} value
 */
function amountText(unit, value) {
  if (!Number.isFinite(value)) return '–';
  if (unit === 'bytes') return formatBytes(Math.round(value));
  if (unit === 'ns') return formatTime(value);
  const number = Math.abs(value) >= 100 || Number.isInteger(value) ? formatCount(value) : value.toFixed(2);
  if (unit === '' || unit === 'count') return number;
  return unit === '%' || unit === 'percent' ? `${number}%` : `${number} ${clean(unit, 20)}`;
}
