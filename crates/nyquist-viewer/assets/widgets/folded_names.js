// The other names of a function's code: the linker folds functions with the same code into one.

import { ask } from '../api.js';
import { clean, formatCount } from '../format.js';

/** How long the pointer must rest on something before more about it is requested. */
export const REST_MS = 150;

/** The number of names that are shown. */
const MAX_SHOWN = 3;

/** The texts of functions, as far as they were requested. @type {Map<number, string | null>} */
const known = new Map();

/**
 * `get_weight and 2 more`; null if the code has one name.
 * @param {number} fn
 * @returns {Promise<string | null>}
 */
export async function foldedNames(fn) {
  const kept = known.get(fn);
  if (kept !== undefined) return kept;
  /** @type {import('../api.js').FoldedNames | null} */
  const answer = await ask('names', 'names', new URLSearchParams({ function: String(fn) })).catch(() => null);
  if (!answer) return null;
  const text = foldedText(answer);
  known.set(fn, text);
  return text;
}

/** @param {import('../api.js').FoldedNames} answer */
export function foldedText({ count, folded }) {
  const shown = folded.slice(0, MAX_SHOWN);
  const more = count - shown.length;
  return shown.length === 0 ? null : `${shown.map((name) => clean(name, 200)).join(', ')}${more > 0 ? ` and ${formatCount(more)} more` : ''}`;
}

/**
 * Adds the names to the title of a row on which the pointer rests.
 * @param {HTMLElement} list
 * @param {(row: HTMLElement) => number | null} functionOf
 */
export function addFoldedNames(list, functionOf) {
  let timer = 0;
  list.addEventListener('pointerover', (event) => {
    clearTimeout(timer);
    const row = event.target instanceof Element ? event.target.closest('.row') : null;
    if (!(row instanceof HTMLElement) || row.dataset['folded'] !== undefined) return;
    timer = setTimeout(async () => {
      const fn = functionOf(row);
      const names = fn === null ? null : await foldedNames(fn);
      if (names === null || row.dataset['folded'] !== undefined) return;
      row.dataset['folded'] = '';
      row.title = `${row.title || row.textContent}\nsame code as: ${names}`;
    }, REST_MS);
  });
}
