// The boxes of a flame graph as a tree: positions, order, and the targets of the arrow keys. Pure.

/**
 * @typedef {object} Box
 * @property {number} depth
 * @property {number} start
 * @property {number} width
 * @property {number} fn
 * @property {number} own
 * @property {number | undefined} before the share of the whole that it had in the run that is compared with
 * @property {Box | null} parent
 */

/** @typedef {{rows: Box[][], weight: number, beforeWeight?: number | undefined}} Layout rows by depth, each from left to right; `beforeWeight` is the whole of the run that is compared with */

/**
 * @param {readonly import('../../api.js').FlameBox[]} boxes
 * @param {number} weight
 * @param {number} [beforeWeight]
 * @returns {Layout}
 */
export function layoutOf(boxes, weight, beforeWeight) {
  /** @type {Box[][]} */
  const rows = [];
  for (const [depth, start, width, fn, own, before] of boxes) {
    while (rows.length <= depth) rows.push([]);
    rows[depth]?.push({ depth, start, width, fn, own, before, parent: null });
  }
  rows.forEach((row, depth) => {
    row.sort((a, b) => a.start - b.start);
    if (depth > 0) for (const box of row) box.parent = boxAt({ rows, weight }, depth - 1, box.start);
  });
  return { rows, weight, beforeWeight };
}

/**
 * The box of a row at a position.
 * @param {Layout} layout
 * @param {number} depth
 * @param {number} place in weights
 * @returns {Box | null}
 */
export function boxAt(layout, depth, place) {
  const row = layout.rows[depth] ?? [];
  let low = 0;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (/** @type {Box} */ (row[middle]).start <= place) low = middle + 1;
    else high = middle;
  }
  const box = row[low - 1];
  return box && place < box.start + box.width ? box : null;
}

/**
 * The functions from the root to a box.
 * @param {Box} box
 * @returns {number[]}
 */
export function pathOf(box) {
  const path = [];
  for (let at = /** @type {Box | null} */ (box); at; at = at.parent) path.push(at.fn);
  return path.reverse();
}

/**
 * The box at the end of a path.
 * @param {Layout} layout
 * @param {readonly number[]} path
 * @returns {Box | null}
 */
export function boxOfPath(layout, path) {
  /** @type {Box | null} */
  let box = null;
  for (const [depth, fn] of path.entries()) {
    const parent = /** @type {Box | null} */ (box);
    const row = /** @type {Box[]} */ (layout.rows[depth] ?? []);
    box = row.find((one) => one.fn === fn && one.parent === parent) ?? null;
    if (!box) return null;
  }
  return box;
}

/**
 * The target of an arrow: `out` is the caller, `in` the widest callee, `left` and `right` the next one of the
 * same depth.
 * @param {Layout} layout
 * @param {Box | null} box
 * @param {'out' | 'in' | 'left' | 'right'} way
 * @returns {Box | null}
 */
export function neighbour(layout, box, way) {
  if (!box) return layout.rows[0]?.reduce((a, b) => (b.width > a.width ? b : a)) ?? null;
  if (way === 'out') return box.parent;
  const row = layout.rows[way === 'in' ? box.depth + 1 : box.depth] ?? [];
  if (way !== 'in') return row[row.indexOf(box) + (way === 'left' ? -1 : 1)] ?? null;
  const children = row.filter((one) => one.parent === box);
  return children.length > 0 ? children.reduce((a, b) => (b.width > a.width ? b : a)) : null;
}
