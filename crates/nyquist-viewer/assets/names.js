// The names of functions by number, from the responses so far. They are cleaned for display on arrival.

import { clean } from './format.js';
import { moduleOf, shadeOf } from './color.js';

/** @typedef {{name: string, short?: string, lib: string | null, lib_number?: number, category: number | null, file?: string | null, line?: number | null}} FunctionRow a row of a response */
/**
 * @typedef {object} Name
 * @property {string} raw the original name
 * @property {string} text the displayed name
 * @property {string} short the same without arguments, for little space
 * @property {string | null} lib the displayed lib
 * @property {number | null} libNumber
 * @property {number | null} category
 * @property {string | null} module the crate, namespace or package, otherwise the lib
 * @property {number} shade
 * @property {string | null} place its file and line
 */

/** @type {Map<number, Name>} */
const names = new Map();

/** The names of libs by number. @type {Map<number, string>} */
const libs = new Map();

/** @type {(() => void)[]} */
const listeners = [];

/**
 * Calls back for new names, because earlier drawings may have shown their numbers.
 * @param {() => void} listener
 */
export function onNewNames(listener) {
  listeners.push(listener);
}

/** @param {Record<string, FunctionRow> | undefined} rows */
export function learnNames(rows) {
  const before = names.size;
  for (const [key, row] of Object.entries(rows ?? {})) {
    const number = Number(key);
    const known = names.get(number);
    const place = row.file ? clean(`${row.file}${row.line ? `:${row.line}` : ''}`, 500) : known?.place ?? null;
    if (known && known.place === place) continue;
    if (row.lib_number !== undefined && row.lib !== null) libs.set(row.lib_number, clean(row.lib, 300));
    names.set(number, {
      raw: row.name, text: clean(row.name) || '(no name)', short: clean(row.short ?? row.name) || '(no name)', lib: row.lib === null ? null : clean(row.lib, 300), libNumber: row.lib_number ?? null, category: row.category,
      module: moduleOf(row.name, row.lib), shade: shadeOf(row.name), place,
    });
  }
  if (names.size > before) for (const listener of listeners) listener();
}

/**
 * @param {number | null} number
 * @returns {Name}
 */
export function nameOf(number) {
  const text = number === null ? '(start of the stack)' : `function ${number}`;
  return (number === null ? undefined : names.get(number)) ?? { raw: text, text, short: text, lib: null, libNumber: null, category: null, module: null, shade: 0.5, place: null };
}

/** The number of the function with a handle. @param {string} handle */
export const numberOf = (handle) => Number(handle.slice(2));

/** @param {number} number */
export const isKnown = (number) => names.has(number);

/** The name of a lib, if one of its functions has been received. @param {number} number */
export const libOf = (number) => libs.get(number) ?? `lib ${number}`;
