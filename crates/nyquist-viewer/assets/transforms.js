// The list of the user's transforms: adding, merging, undoing. Pure.

/** A transform in the API's form: `focus-function:17`. @typedef {string} Transform */

const SUBTREE = new Set(['focus-subtree', 'focus-inverted-subtree']);

/** @param {Transform} transform */
export function kindOf(transform) {
  return transform.slice(0, transform.indexOf(':'));
}

/** @param {Transform} transform */
function valueOf(transform) {
  return transform.slice(transform.indexOf(':') + 1);
}

/**
 * The numbers in a transform's value.
 * @param {Transform} transform
 */
export function numbersOf(transform) {
  return valueOf(transform).split('.').map(Number);
}

/**
 * Whether a text is a transform.
 * @param {string} text
 */
export function isTransform(text) {
  return /^[a-z]+(-[a-z]+)*:\d+(\.\d+)*$/.test(text);
}

/**
 * The list with one more transform. A subtree of a subtree becomes one step. A transform that is already in
 * the list is not added again.
 * @param {readonly Transform[]} list
 * @param {Transform} added
 * @returns {Transform[]}
 */
export function addTransform(list, added) {
  const last = list.at(-1);
  if (last === added) return [...list];
  if (last !== undefined && SUBTREE.has(kindOf(added)) && kindOf(last) === kindOf(added)) {
    const deeper = numbersOf(added).slice(1);
    if (deeper.length === 0) return [...list];
    return [...list.slice(0, -1), `${kindOf(added)}:${[...numbersOf(last), ...deeper].join('.')}`];
  }
  return [...list, added];
}

/**
 * The list without one transform. Subtrees below a removed subtree have lost their root, and are removed too.
 * @param {readonly Transform[]} list
 * @param {number} index
 * @returns {Transform[]}
 */
export function removeTransform(list, index) {
  const gone = list[index];
  if (gone === undefined) return [...list];
  const kind = kindOf(gone);
  return list.filter((transform, i) => i < index || (i > index && !(SUBTREE.has(kind) && kindOf(transform) === kind)));
}

/**
 * The functions above the root of the shown tree, from the outermost, with the transforms to go back to each.
 * @param {readonly Transform[]} list
 * @param {boolean} inverted
 * @returns {{fn: number, list: Transform[]}[]}
 */
export function parentsOf(list, inverted) {
  const kind = inverted ? 'focus-inverted-subtree' : 'focus-subtree';
  /** @type {{fn: number, list: Transform[]}[]} */
  let parents = [];
  list.forEach((transform, i) => {
    if (kindOf(transform) === 'focus-function' || kindOf(transform) === 'focus-self') parents = [];
    if (kindOf(transform) !== kind) return;
    const path = numbersOf(transform);
    path.slice(0, -1).forEach((fn, depth) => {
      const shorter = `${kind}:${path.slice(0, depth + 1).join('.')}`;
      parents.push({ fn, list: [...removeTransform(list, i).slice(0, i), shorter, ...removeTransform(list, i).slice(i)] });
    });
  });
  return parents;
}

/** The words of a breadcrumb. @type {Record<string, string>} */
export const WORDS = {
  'focus-function': 'Focus', 'focus-self': 'Self of', 'merge-function': 'Hide', 'drop-function': 'Without', 'collapse-recursion': 'Collapse recursion',
  'collapse-subtree': 'Collapse', 'collapse-lib': 'Collapse lib', 'drop-category': 'Without category', 'focus-subtree': 'Zoom',
  'focus-inverted-subtree': 'Zoom',
};
