// Finds the names that a search matches, by the API's rules: a part of a name, ignoring case, or /REGEX/; with `!`
// before it, the others.

import { nameOf } from './names.js';

/**
 * @param {string} pattern
 * @returns {(name: string) => boolean} never matches if the pattern is empty or does not parse
 */
export function matcher(pattern) {
  if (pattern.startsWith('!') && pattern.length > 1) {
    const test = matcher(pattern.slice(1));
    return (name) => !test(name);
  }
  const regex = /^\/(.*)\/$/.exec(pattern);
  if (regex) return regexMatcher(regex[1] ?? '');
  const wanted = pattern.toLowerCase();
  return wanted === '' ? () => false : (name) => name.toLowerCase().includes(wanted);
}

/**
 * @param {string} source
 * @returns {(name: string) => boolean}
 */
function regexMatcher(source) {
  try {
    const regex = new RegExp(source, 'u');
    return source === '' ? () => false : (name) => regex.test(name);
  } catch {
    return () => false;
  }
}

/**
 * The functions that the search matches, cached by number for the same search.
 */
export function createHighlight() {
  let searched = '';
  let test = matcher('');
  /** @type {Map<number, boolean>} */
  let known = new Map();
  const matches = (/** @type {number} */ fn) => {
    const found = known.get(fn) ?? test(nameOf(fn).raw);
    known.set(fn, found);
    return found;
  };
  return {
    /**
     * @param {string} text
     * @returns {boolean} whether the search has changed
     */
    search(text) {
      if (text === searched) return false;
      searched = text;
      test = matcher(text);
      known = new Map();
      return true;
    },
    /** @returns {((fn: number) => boolean) | null} null without a search */
    matches: () => (searched === '' ? null : matches),
  };
}
