// Sums over the boxes of a flame graph, which a page from a disk has instead of a profile. Pure.

/** @typedef {import('../assets/panels/flame_graph/layout.js').Box} Box */
/** @typedef {import('../assets/panels/flame_graph/layout.js').Layout} Layout */
/** @typedef {{box: Box, children: Node[]}} Node its children are the heaviest first */
/** @typedef {{weight: number, nodes: Node[], below: (path: number[]) => Roots}} Roots */

/** @type {WeakMap<Layout, Node[]>} */
const trees = new WeakMap();

/**
 * The tree of a layout, made once.
 * @param {Layout} layout
 */
function treeOf(layout) {
  const known = trees.get(layout);
  if (known) return known;
  /** @type {Map<Box, Node>} */
  const nodes = new Map();
  /** @type {Node[]} */
  const roots = [];
  for (const row of layout.rows) {
    for (const box of row) {
      const node = { box, children: [] };
      nodes.set(box, node);
      (box.parent ? nodes.get(box.parent)?.children ?? [] : roots).push(node);
    }
  }
  const sort = (/** @type {Node[]} */ list) => list.sort((a, b) => b.box.width - a.box.width);
  sort(roots);
  for (const { children } of nodes.values()) sort(children);
  trees.set(layout, roots);
  return roots;
}

/**
 * The tree from the end of a path on; empty if the path does not exist.
 * @param {Layout} layout
 * @param {number[]} path
 * @returns {Roots}
 */
export function rootsAt(layout, path) {
  let nodes = treeOf(layout);
  let weight = layout.weight;
  path.forEach((fn, depth) => {
    const found = nodes.find(({ box }) => box.fn === fn);
    weight = found?.box.width ?? 0;
    nodes = found ? (depth === path.length - 1 ? [found] : found.children) : [];
  });
  return { weight, nodes, below: (more) => childrenAt({ weight, nodes, below: () => empty }, more) };
}

/** @type {Roots} */
const empty = { weight: 0, nodes: [], below: () => empty };

/**
 * @param {Roots} roots
 * @param {number[]} path
 * @returns {Roots}
 */
function childrenAt(roots, path) {
  let { nodes } = roots;
  for (const fn of path) nodes = nodes.find(({ box }) => box.fn === fn)?.children ?? [];
  return { ...roots, nodes };
}

/**
 * Calls back for each node, callers before callees, with the nodes above it.
 * @param {Roots} roots
 * @param {(node: Node, above: Node[]) => boolean} visit whether to go on to its children
 */
function walk(roots, visit) {
  /** @type {Node[]} */
  const above = [];
  const ahead = roots.nodes.map((node) => ({ node, depth: 0 })).reverse();
  for (let next = ahead.pop(); next; next = ahead.pop()) {
    above.length = next.depth;
    const goesOn = visit(next.node, above);
    above.push(next.node);
    if (goesOn) for (const child of [...next.node.children].reverse()) ahead.push({ node: child, depth: next.depth + 1 });
  }
}

/**
 * The boxes of the tree in the API's form, from the left edge on.
 * @param {Roots} roots
 */
export function boxesOf(roots) {
  /** @type {import('../assets/api.js').FlameBox[]} */
  const boxes = [];
  const first = Math.min(...roots.nodes.map(({ box }) => box.start));
  let depth = 0;
  walk(roots, ({ box }, above) => {
    depth = Math.max(depth, above.length + 1);
    boxes.push([above.length, box.start - first, box.width, box.fn, box.own]);
    return true;
  });
  return { weight: roots.weight, boxes, depth };
}

/**
 * The self and total weight of each function.
 * @param {Roots} roots
 * @returns {[fn: number, own: number, total: number][]}
 */
export function functionsOf(roots) {
  /** @type {Map<number, [number, number, number]>} */
  const sums = new Map();
  walk(roots, ({ box }, above) => {
    const sum = sums.get(box.fn) ?? [box.fn, 0, 0];
    sums.set(box.fn, sum);
    sum[1] += box.own;
    if (!above.some((one) => one.box.fn === box.fn)) sum[2] += box.width;
    return true;
  });
  return [...sums.values()];
}

/**
 * The sum of the samples with a function of a set.
 * @param {Roots} roots
 * @param {Set<number>} found
 */
export function sumOfMatches(roots, found) {
  let sum = 0;
  walk(roots, ({ box }) => {
    if (!found.has(box.fn)) return true;
    sum += box.width;
    return false;
  });
  return sum;
}

/**
 * The callers and callees of a function, for its outermost calls.
 * @param {Roots} roots
 * @param {number} fn
 */
export function callersOf(roots, fn) {
  /** @type {[Map<number | null, number>, Map<number | null, number>]} */
  const [callers, callees] = [new Map(), new Map()];
  const add = (/** @type {Map<number | null, number>} */ map, /** @type {number | null} */ key, /** @type {number} */ value) => void map.set(key, (map.get(key) ?? 0) + value);
  walk(roots, ({ box, children }, above) => {
    if (box.fn !== fn) return true;
    add(callers, above.at(-1)?.box.fn ?? null, box.width);
    for (const child of children) add(callees, child.box.fn, child.box.width);
    return false;
  });
  const sorted = (/** @type {Map<number | null, number>} */ map) => [...map].sort((a, b) => b[1] - a[1]);
  const amounts = functionsOf(roots).find(([number]) => number === fn) ?? [fn, 0, 0];
  return { function: amounts, callers: sorted(callers), callees: sorted(callees) };
}
