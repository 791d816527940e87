// Tells which names a pattern matches, by the rules of the API: a part of a name in any case, or /REGEX/.

/**
 * @param {string} pattern
 * @returns {(name: string) => boolean} never matches when the pattern is empty or does not parse
 */
export function matcher(pattern) {
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
