// The rows of responses that a page from a disk makes of boxes: the same rows as a server's. Pure.

/** @typedef {import('../schema.js').FunctionRow} FunctionRow */
/** @typedef {{weight: number, interval_ns: number, functions: import('../assets/api.js').Functions}} Head */

/**
 * What a function takes in its own code, and with what it calls.
 * @param {Head} head
 * @param {number} own
 * @param {number} total
 */
function amounts({ weight, interval_ns: interval }, own, total) {
  const share = (/** @type {number} */ part) => (weight === 0 ? 0 : part / weight);
  return { self: own, total, self_share: share(own), total_share: share(total), self_amount: own * interval, total_amount: total * interval };
}

/**
 * @param {Head} head
 * @param {number} fn
 * @param {number} own
 * @param {number} total
 * @returns {FunctionRow}
 */
export function functionRow(head, fn, own, total) {
  const known = head.functions[fn];
  return { handle: `f-${fn}`, function: known?.name ?? '', lib: known?.lib ?? null, file: known?.file ?? null, line: known?.line ?? null, ...amounts(head, own, total), self_error: null, total_error: null };
}

/**
 * A caller or a callee; the function is null where the stack begins.
 * @param {Head} head
 * @param {number | null} fn
 * @param {number} weight
 * @returns {import('../schema.js').NeighborRow}
 */
export function neighborRow(head, fn, weight) {
  const { total, total_share, total_amount } = amounts(head, 0, weight);
  const known = fn === null ? undefined : head.functions[fn];
  return { handle: fn === null ? null : `f-${fn}`, function: fn === null ? '(root)' : known?.name ?? '', lib: known?.lib ?? null, total, total_share, total_amount };
}

/**
 * A node below a path, which is empty for a root.
 * @param {Head} head
 * @param {string} prefix
 * @param {import('./boxes.js').Node} node
 * @returns {import('../schema.js').PathNodeRow}
 */
export function nodeRow(head, prefix, { box: { fn, own, width }, children }) {
  const { handle, function: name, lib } = functionRow(head, fn, own, width);
  const depth = prefix === '' ? 0 : prefix.split('.').length;
  return { path: prefix === '' ? String(fn) : `${prefix}.${fn}`, depth, handle, function: name, lib, inlined: false, has_children: children.length > 0, ...amounts(head, own, width) };
}
