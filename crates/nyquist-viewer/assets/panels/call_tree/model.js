// The known part of the call tree, and its visible rows. No drawing, no requests.

import { numberOf } from '../../names.js';

/** @typedef {import('../../api.js').TreeRow} TreeRow */
/**
 * @typedef {object} TreeNode
 * @property {string} path
 * @property {number} fn
 * @property {number} own
 * @property {number} total
 * @property {boolean} hasChildren
 * @property {string[] | null} children their paths, the heaviest first; null until they are requested
 * @property {number} leftOut the number of further children
 */
/** @typedef {{nodes: Map<string, TreeNode>, expanded: Set<string>}} Model the root's path is empty */
/** @typedef {{path: string, depth: number, more: number, index: number, siblings: number}} Row `more`: the number of left out children that the row stands for */

/** @returns {Model} */
export function emptyModel() {
  const root = { path: '', fn: -1, own: 0, total: 0, hasChildren: true, children: null, leftOut: 0 };
  return { nodes: new Map([['', root]]), expanded: new Set() };
}

/** @param {string} path */
export function parentPath(path) {
  return path.slice(0, Math.max(0, path.lastIndexOf('.')));
}

/**
 * Adds the rows of a response. Children of a node replace its previous ones.
 * @param {Model} model
 * @param {string} path the node whose children were requested
 * @param {readonly TreeRow[]} rows
 * @param {number} leftOut
 * @returns {string[]} the nodes whose children were received
 */
export function addRows(model, path, rows, leftOut) {
  /** @type {Map<string, string[]>} */
  const children = new Map([[path, []]]);
  for (const { path: rowPath, handle, self: own, total, has_children: hasChildren } of rows) {
    const fn = numberOf(handle);
    const known = model.nodes.get(rowPath);
    model.nodes.set(rowPath, { path: rowPath, fn, own, total, hasChildren, children: known?.children ?? null, leftOut: known?.leftOut ?? 0 });
    const parent = parentPath(rowPath);
    const list = children.get(parent);
    if (list) list.push(rowPath);
    else children.set(parent, [rowPath]);
  }
  for (const [parent, list] of children) {
    const node = model.nodes.get(parent);
    if (!node) continue;
    node.children = list;
    node.leftOut = parent === path ? leftOut : 0;
  }
  return [...children.keys()];
}

/**
 * The visible rows, from top to bottom.
 * @param {Model} model
 * @returns {Row[]}
 */
export function rowsOf(model) {
  /** @type {Row[]} */
  const out = [];
  const add = (/** @type {string} */ path, /** @type {number} */ depth) => {
    const node = model.nodes.get(path);
    const children = node?.children ?? [];
    children.forEach((child, i) => {
      out.push({ path: child, depth, more: 0, index: i + 1, siblings: children.length });
      if (model.expanded.has(child)) add(child, depth + 1);
    });
    if (node && node.leftOut > 0) out.push({ path, depth, more: node.leftOut, index: children.length + 1, siblings: children.length + 1 });
  };
  add('', 0);
  return out;
}

/**
 * The end of the hottest open path: from the root always the first child, down to a function that has more time
 * itself than each of those it calls.
 * @param {Model} model
 */
export function hottest(model) {
  let path = '';
  for (;;) {
    const node = model.nodes.get(path);
    const next = path === '' || model.expanded.has(path) ? node?.children?.[0] : undefined;
    const child = next === undefined ? undefined : model.nodes.get(next);
    if (!node || !child || child.total < node.own) return path;
    path = child.path;
  }
}

/**
 * The indentation of a row. Deep stacks must not push their names out of sight.
 * @param {number} depth
 */
export function indent(depth) {
  return Math.min(depth, 30) * 10 + Math.max(0, depth - 30) * 2;
}
