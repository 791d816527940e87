// The rows of a comparison: a heading for each part, and the functions below it. Pure.

import { formatChange } from '../../format.js';

/** @typedef {import('../../api.js').DiffRow} DiffRow */
/** @typedef {{title: string, row: DiffRow | null}} Row a heading has no function */

/**
 * @param {import('../../api.js').Diff} answer
 * @returns {Row[]}
 */
export function rowsOf(answer) {
  /** @type {Row[]} */
  const rows = [];
  let part = '';
  for (const row of answer.rows) {
    const title = partOf(row);
    if (title !== part) rows.push({ title, row: null });
    part = title;
    rows.push({ title, row });
  }
  return rows;
}

/** @param {DiffRow} row */
function partOf({ self }) {
  if (self.is_noise) return 'Within noise';
  return self.change > 0 ? 'Slower' : 'Faster';
}

/**
 * A change relative to the value before.
 * @param {import('../../api.js').Comparison} comparison
 */
export function relativeOf({ relative, after }) {
  if (relative !== null) return formatChange(relative);
  return after > 0 ? 'new' : '+0.0%';
}

/**
 * The whole before and after, with the confidence of the change.
 * @param {import('../../api.js').Diff} answer
 * @param {string} measure
 * @param {(ns: number) => string} amount
 * @param {[string, string]} [names] of both runs
 */
export function summaryOf({ whole }, measure, amount, [before, after] = ['before', 'after']) {
  const margin = whole.before > 0 ? formatChange(whole.margin / whole.before).slice(1) : '–';
  const noise = whole.is_noise ? ', which is noise' : '';
  return `${measure} ${before} ${amount(whole.before)}, ${after} ${amount(whole.after)}: ${relativeOf(whole)} ± ${margin}${noise}`;
}
