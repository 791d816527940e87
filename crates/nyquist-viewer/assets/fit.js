// Shortens names to fit a width, by removing the least informative parts. `fit.rs` is the same rule.

const MARK = '…';
/** The minimum width of a shortened `<Type as Trait>`. */
const MIN_TYPE_WIDTH = 12;
const ENDINGS = ['so', 'dll', 'exe', 'dylib', 'js', 'py', 'map', 'ko', 'cold'];
/** The parts of names, because the same names are drawn again and again. @type {Map<string, Parts>} */
const known = new Map();
const MAX_KNOWN = 5000;
/** A longer text is not divided into parts. */
const MAX_DIVIDED = 4000;

/** @typedef {{before: string, rest: string}} Rest the part before, and the separator with all that comes after it */
/** @typedef {{plain: string, whole: Rest[], short: Rest[], head: string | null}} Parts */

/**
 * The name in at most `width` characters.
 * @param {string} name
 * @param {number} width
 * @returns {string}
 */
export function fitName(name, width) {
  if (name.length <= width) return name;
  if (name.length > MAX_DIVIDED) return fitMiddle(name, width);
  const { plain, whole, short, head } = partsOf(name);
  if (head !== null) return fitBeforePlace(name, head, width);
  const fits = (/** @type {Rest} */ { rest }) => rest.length < width;
  const long = atLeast(whole, 2).find(fits);
  if (long) return MARK + long.rest;
  if (plain.length <= width) return plain;
  const shorter = atLeast(short, 2).find(fits);
  if (shorter) return MARK + shorter.rest;
  const end = whole.find(fits) ?? short.find(fits);
  if (end) return withType(end, width);
  const rest = short.at(-1);
  const last = rest ? rest.rest.replace(/^[:/.]+/, '') : plain;
  if (rest && last.length < width) return MARK + last;
  if (last.length <= width) return last;
  return rest && width > 2 ? MARK + fitMiddle(last, width - 1) : fitMiddle(last, width);
}

/**
 * The text in at most `width` characters, without its middle.
 * @param {string} text
 * @param {number} width
 */
function fitMiddle(text, width) {
  const characters = [...text];
  if (characters.length <= width) return text;
  const room = Math.max(0, width - 1);
  const tail = Math.floor(room / 2);
  return characters.slice(0, Math.ceil(room / 2)).join('') + MARK + characters.slice(characters.length - tail).join('');
}

/**
 * @param {Rest} end
 * @param {number} width
 */
function withType({ before, rest }, width) {
  const left = width - rest.length;
  return (before.startsWith('<') && left >= MIN_TYPE_WIDTH ? fitMiddle(before, left) : MARK) + rest;
}

/**
 * A name with its place behind it: its end is left out first.
 * @param {string} name
 * @param {string} head
 * @param {number} width
 */
function fitBeforePlace(name, head, width) {
  if (head.length > width) return fitName(head, width);
  const cut = name.slice(0, Math.max(width - 1, head.length));
  return cut.length > head.length + 1 ? cut + MARK : head;
}

/**
 * The rests with at least so many names.
 * @param {Rest[]} rests
 * @param {number} least
 */
function atLeast(rests, least) {
  return rests.slice(0, Math.max(0, rests.length + 1 - least));
}

/**
 * @param {string} name
 * @returns {Parts}
 */
function partsOf(name) {
  const found = known.get(name);
  if (found) return found;
  if (known.size >= MAX_KNOWN) known.clear();
  const plain = withoutArguments(name);
  const [slash] = places(name, '/');
  const [blank] = places(name, ' ');
  const head = slash !== undefined && blank !== undefined && blank < slash ? name.slice(0, blank) : null;
  const parts = { plain, whole: restsOf(name), short: restsOf(plain), head };
  known.set(name, parts);
  return parts;
}

/**
 * The rests of a path that begin with a name, the longest first.
 * @param {string} name
 * @returns {Rest[]}
 */
function restsOf(name) {
  const separator = ['::', '/', '.'].find((one) => places(name, one).length > 0);
  if (separator === undefined || (separator === '.' && !isDottedPath(name))) return [];
  const found = places(name, separator);
  const last = /** @type {number} */ (found.at(-1)) + separator.length;
  if (separator === '/' && !name.startsWith('/') && isDottedPath(name.slice(last))) found.push(...places(name.slice(last), '.').map((at) => last + at));
  let start = 0;
  const rests = found.map((at) => {
    const before = name.slice(start, at);
    start = at + (name.startsWith('::', at) ? 2 : 1);
    return { before, rest: name.slice(at) };
  });
  return rests.filter(({ rest }) => isNamed(rest));
}

/**
 * Whether the first part of a rest is a name, and not one of a closure, or arguments.
 * @param {string} rest
 */
function isNamed(rest) {
  const name = rest.replace(/^[:/.]+/, '');
  return !(/^[{<]/.test(name) || name.startsWith('operator()') || (rest.startsWith('.') && /^(func)?\d[\d.func]*$/.test(name)));
}

/**
 * A name without the contents of its brackets, and without parameters and what comes after these: `Vec<…>::push`.
 * @param {string} name
 */
function withoutArguments(name) {
  let plain = '';
  for (let i = 0; i < name.length; i++) {
    const operator = operatorAt(name, i);
    const c = name[i];
    const end = c === '<' || c === '(' ? closing(name, i) : -1;
    const rest = end > 0 ? name.slice(end + 1) : '';
    if (operator > 0) {
      plain += name.slice(i, i + operator);
      i += operator - 1;
    } else if (end > 0 && c === '<' && plain.endsWith('::') && /^(::\{|\(|$)/.test(rest)) {
      plain = plain.slice(0, -2);
      i = end;
    } else if (end > 0 && c === '<' && (isWordEnd(plain) || plain.endsWith('::'))) {
      plain += `<${MARK}>`;
      i = end;
    } else if (end > 0 && c === '(' && (isWordEnd(plain) || /(…>|operator\S+)$/.test(plain))) {
      i = /^ (const|->)/.test(rest) ? name.length : end;
    } else plain += c;
  }
  return plain;
}

/** @param {string} text */
const isWordEnd = (text) => /[\p{L}\p{N}_\]]$/u.test(text.slice(-2));

/**
 * The position of the bracket that closes the one at a position, or -1.
 * @param {string} text
 * @param {number} from
 */
function closing(text, from) {
  let depth = 0;
  for (let i = from; i < text.length; i++) {
    const c = /** @type {string} */ (text[i]);
    if ('<([{'.includes(c)) depth++;
    else if (')]}'.includes(c) || (c === '>' && text[i - 1] !== '-')) depth = Math.max(0, depth - 1);
    if (depth === 0) return i;
  }
  return -1;
}

/**
 * The length of an operator of C++ at a position; 0 if there is none.
 * @param {string} name
 * @param {number} at
 */
function operatorAt(name, at) {
  return name.startsWith('operator', at) ? /** @type {RegExpExecArray} */ (/^operator(\(\)|[-<>=]*)/.exec(name.slice(at, at + 20)))[0].length : 0;
}

/**
 * Whether dots separate packages, classes and methods.
 * @param {string} name
 */
function isDottedPath(name) {
  const parts = name.split('.');
  const isWord = (/** @type {string} */ part, /** @type {number} */ i) => /^[\p{L}_$(<]/u.test(part) || (/^\d+$/.test(part) && /^(func)?\d+$/.test(parts[i - 1] ?? ''));
  return parts.every(isWord)
    && !ENDINGS.includes(parts.at(-1) ?? '');
}

/**
 * The places of a separator outside of brackets.
 * @param {string} name
 * @param {string} separator
 */
function places(name, separator) {
  const found = [];
  let depth = 0;
  for (let i = 0; i < name.length; i++) {
    const operator = operatorAt(name, i);
    const c = /** @type {string} */ (name[i]);
    if (operator > 0) i += operator - 1;
    else if (depth === 0 && i > 0 && name.startsWith(separator, i)) {
      found.push(i);
      i += separator.length - 1;
    } else if ('<([{'.includes(c)) depth++;
    else if (')]}'.includes(c) || (c === '>' && name[i - 1] !== '-')) depth = Math.max(0, depth - 1);
  }
  return found;
}
