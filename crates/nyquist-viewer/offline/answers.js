// The responses that a page from a disk contains, instead of a server: those about its one selection. Pure.

import { matcher } from '../assets/pattern.js';
import { layoutOf } from '../assets/panels/flame_graph/layout.js';
import { boxesOf, callersOf, functionsOf, rootsAt, sumOfMatches } from './boxes.js';
import { functionRow, neighborRow, nodeRow } from './rows.js';

/** @typedef {import('../assets/api.js').Info} Info */
/** @typedef {import('../assets/api.js').FlameGraph} FlameGraph */
/** @typedef {import('../assets/api.js').FunctionList} FunctionList */
/** @typedef {import('../assets/api.js').FunctionAmounts} FunctionAmounts */
/** @typedef {import('./boxes.js').Roots} Roots */
/**
 * @typedef {object} Data
 * @property {Info} info
 * @property {import('../assets/api.js').Timeline} overview
 * @property {import('../assets/api.js').Timeline} tracks
 * @property {FlameGraph} flame
 * @property {FlameGraph} inverted
 * @property {FunctionList} byOwn
 * @property {FunctionList} byTotal
 * @property {Compiled} [compiled] the same with functions as they were compiled, if some were inlined
 * @property {import('../assets/api.js').Counters} counters
 * @property {import('../assets/api.js').Markers} markers
 */

/** @typedef {Pick<Data, 'flame' | 'inverted' | 'byOwn' | 'byTotal'>} Compiled */

/** The parameters that select samples; the file has only those of its own selection. */
const SELECTING = ['threads', 'range', 'state', 'focus', 'ignore', 'show', 'hide', 'own'];

/** The reason why the file alone cannot answer a request. */
export class NotInFile extends Error {}

/**
 * @param {Data} data
 * @returns {(question: string, params: URLSearchParams) => any} throws `NotInFile`
 */
export function createAnswers(data) {
  const { compiled } = data;
  const info = { ...data.info, has_inlined: compiled !== undefined };
  const plain = answersOf({ ...data, info });
  const asCompiled = compiled && answersOf({ ...data, ...compiled, info });
  return (question, params) => {
    const answers = params.has('no_inline') ? asCompiled : plain;
    const answer = answers?.[question];
    if (!answer || SELECTING.some((name) => params.has(name))) throw new NotInFile('this file does not hold it; open the profile with nyquist load');
    return answer(params);
  };
}

/**
 * @param {Data} data
 * @returns {Record<string, (params: URLSearchParams) => any>}
 */
function answersOf(data) {
  const names = { ...data.byOwn.functions, ...data.byTotal.functions };
  const functions = { ...data.flame.functions, ...data.inverted.functions, ...names };
  const graphs = { flame: layoutOf(data.flame.boxes, data.flame.weight), inverted: layoutOf(data.inverted.boxes, data.inverted.weight) };
  const roots = (/** @type {URLSearchParams} */ params) => rootsOf(graphs, params);
  const head = (/** @type {number} */ weight) => ({ weight, interval_ns: data.info.interval_ns, unit: data.info.measure.unit, functions });
  return {
    info: (params) => ({ ...data.info, functions, summary: { ...data.info.summary, weight: zoomOf(params) ? roots(params).weight : data.info.summary.weight } }),
    timeline: (params) => timeline(data, params),
    flamegraph: (params) => {
      const { weight, boxes, depth } = boxesOf(roots(params));
      return { ...head(weight), boxes, depth };
    },
    tree: (params) => ({ ...head(roots(params).weight), ...rows(head(roots(params).weight), roots(params), params) }),
    functions: (params) => {
      const whole = head(zoomOf(params) ? roots(params).weight : data.byOwn.weight);
      return { ...whole, ...list(data, roots(params), whole, params) };
    },
    callers: (params) => ({ ...head(roots(params).weight), ...neighbors(head(roots(params).weight), roots(params), Number(params.get('function'))) }),
    search: (params) => {
      const test = matcher(params.get('q') ?? '');
      const found = new Set(Object.keys(functions).filter((number) => test(functions[number]?.name ?? '')).map(Number));
      const { weight } = roots(params);
      return { weight, matched: sumOfMatches(roots(params), found), functions: found.size };
    },
    counters: () => data.counters,
    markers: (params) => markers(data, params),
  };
}

/** The zoomed subtree. @param {URLSearchParams} params */
function zoomOf(params) {
  return params.getAll('transform').at(-1) ?? null;
}

/**
 * @param {{flame: import('../assets/panels/flame_graph/layout.js').Layout, inverted: import('../assets/panels/flame_graph/layout.js').Layout}} graphs
 * @param {URLSearchParams} params
 * @returns {Roots}
 */
function rootsOf(graphs, params) {
  const inverted = params.get('inverted') === '1';
  const zoom = zoomOf(params);
  if (zoom === null) return rootsAt(inverted ? graphs.inverted : graphs.flame, []);
  const [kind = '', path = ''] = zoom.split(':');
  const ofInverted = kind === 'focus-inverted-subtree';
  if (!ofInverted && kind !== 'focus-subtree') throw new NotInFile(`this file does not hold ${kind}; open the profile with nyquist load`);
  if (ofInverted !== inverted && params.has('inverted')) throw new NotInFile('this file has the zoomed part in the other order only');
  return rootsAt(ofInverted ? graphs.inverted : graphs.flame, path.split('.').map(Number));
}

/**
 * @param {Data} data
 * @param {URLSearchParams} params
 */
function timeline(data, params) {
  const answer = params.has('tracks') ? data.tracks : data.overview;
  return params.has('function') || params.has('search') ? { ...answer, tracks: [] } : answer;
}

/**
 * The children of a node, or the tree opened along its heaviest path.
 * @param {import('./rows.js').Head} head
 * @param {Roots} roots
 * @param {URLSearchParams} params
 */
function rows(head, roots, params) {
  const path = (params.get('path') ?? '').split('.').filter(Boolean).map(Number);
  /** @type {import('../assets/api.js').TreeRow[]} */
  const out = [];
  const add = (/** @type {Roots} */ at, /** @type {string} */ prefix) => {
    for (const node of at.nodes) out.push(nodeRow(head, prefix, node));
  };
  let prefix = path.join('.');
  let at = roots.below(path);
  add(at, prefix);
  for (let next = at.nodes[0]; params.has('expand') && next && next.children.length > 0; next = at.nodes[0]) {
    // A function that has more time itself than each of those it calls is the end of the path.
    if ((next.children[0]?.box.width ?? 0) < next.box.own) break;
    prefix = prefix === '' ? String(next.box.fn) : `${prefix}.${next.box.fn}`;
    at = { ...at, nodes: next.children };
    add(at, prefix);
    if ((next.children[0]?.box.width ?? 0) < Math.floor(next.box.width / 2)) break;
  }
  return { rows: out, left_out: 0 };
}

/**
 * A function with its callers and callees.
 * @param {import('./rows.js').Head} head
 * @param {Roots} roots
 * @param {number} fn
 */
function neighbors(head, roots, fn) {
  const { function: [, own, total], callers, callees } = callersOf(roots, fn);
  const all = (/** @type {[number | null, number][]} */ found) => found.map(([other, weight]) => neighborRow(head, other, weight));
  return { function: functionRow(head, fn, own, total), callers: all(callers), callees: all(callees) };
}

/**
 * @param {Data} data
 * @param {Roots} roots
 * @param {import('./rows.js').Head} head
 * @param {URLSearchParams} params
 */
function list(data, roots, head, params) {
  const sort = params.get('sort') === 'total' ? 'total' : 'self';
  const search = params.get('search') ?? '';
  const test = search === '' ? () => true : matcher(search);
  const whole = sort === 'total' ? data.byTotal : data.byOwn;
  const zoomed = params.getAll('transform').length > 0;
  const all = zoomed ? functionsOf(roots).map(([fn, own, total]) => functionRow(head, fn, own, total)).sort((a, b) => b[sort] - a[sort]) : whole.rows;
  const found = all.filter((row) => test(row.function));
  const offset = Number(params.get('offset') ?? 0);
  return { count: found.length, rows: found.slice(offset, offset + Number(params.get('limit') ?? 200)) };
}

/**
 * @param {Data} data
 * @param {URLSearchParams} params
 */
function markers(data, params) {
  const [kind, search] = [params.get('kind'), params.get('search') ?? ''];
  const test = search === '' ? () => true : matcher(search);
  const both = search.startsWith('!');
  const found = (/** @type {string} */ name, /** @type {string} */ text) => (both ? test(name) && test(text) : test(name) || test(text));
  const rows = data.markers.rows.filter(([, , , name, text]) => (kind === null || kind === name) && found(name, text));
  return { ...data.markers, count: kind === null && search === '' ? data.markers.count : rows.length, rows };
}
