// The state of the page as the query of its address, and as parameters of the API.

import { INITIAL, TABS } from './store.js';
import { isTransform } from './transforms.js';

/** @typedef {import('./store.js').State} State */
/** @typedef {import('./store.js').FilterKind} FilterKind */

const FILTERS = /** @type {const} */ (['focus', 'ignore', 'show', 'hide']);

/**
 * The query of a state, without initial values.
 * @param {State} state
 */
export function toQuery(state) {
  const query = new URLSearchParams();
  if (state.tab !== INITIAL.tab) query.set('tab', state.tab);
  if (state.threads.length > 0) query.set('threads', state.threads.join(','));
  for (const [start, end] of state.ranges) query.append('range', `${start}-${end}`);
  if (state.last !== null) query.set('last', String(state.last));
  if (state.time !== INITIAL.time) query.set('state', state.time);
  if (state.event !== null) query.set('event', state.event);
  if (state.counters !== null) query.set('counters', state.counters ? '1' : '0');
  for (const { kind, pattern } of state.filters) query.append(kind, pattern);
  for (const transform of state.transforms) query.append('transform', transform);
  if (state.own) query.set('own', '1');
  if (state.compiled) query.set('compiled', '1');
  if (state.hidden.length > 0) query.set('hidden', state.hidden.join(','));
  if (state.inverted) query.set('inverted', '1');
  if (state.icicle) query.set('icicle', '1');
  if (state.color !== INITIAL.color) query.set('color', state.color);
  if (state.sort !== INITIAL.sort) query.set('sort', state.sort);
  if (state.group !== INITIAL.group) query.set('group', state.group);
  if (state.unit !== INITIAL.unit) query.set('unit', state.unit);
  if (state.search !== '') query.set('q', state.search);
  if (state.fn !== null) query.set('function', String(state.fn));
  if (state.kind !== null) query.set('kind', state.kind);
  const text = query.toString().replaceAll('%2C', ',').replaceAll('%3A', ':');
  return text === '' ? '' : `?${text}`;
}

/**
 * The state of a query. Missing and invalid values get their initial values.
 * @param {string} text
 * @returns {State}
 */
export function fromQuery(text) {
  const query = new URLSearchParams(text);
  const tab = TABS.find(([name]) => name === query.get('tab'))?.[0];
  return {
    threads: numbers(query.get('threads') ?? ''),
    ranges: query.getAll('range').flatMap(parseRange),
    last: query.has('range') ? null : numbers(query.get('last') ?? '').find((seconds) => seconds > 0 && seconds < 1e6) ?? null,
    time: pick(query.get('state'), /** @type {const} */ (['running', 'waiting', 'both'])) ?? INITIAL.time,
    event: query.get('event') || null,
    counters: query.has('counters') ? query.get('counters') === '1' : null,
    filters: [...query].flatMap(([name, pattern]) => {
      const kind = pick(name, FILTERS);
      return kind && pattern !== '' ? [{ kind, pattern }] : [];
    }),
    transforms: query.getAll('transform').filter(isTransform),
    own: query.get('own') === '1',
    compiled: query.get('compiled') === '1',
    hidden: numbers(query.get('hidden') ?? ''),
    tab: tab ?? INITIAL.tab,
    inverted: query.get('inverted') === '1',
    icicle: query.get('icicle') === '1',
    color: pick(query.get('color'), /** @type {const} */ (['module', 'lib', 'category', 'change'])) ?? INITIAL.color,
    sort: pick(query.get('sort'), /** @type {const} */ (['own', 'total'])) ?? INITIAL.sort,
    group: pick(query.get('group'), /** @type {const} */ (['function', 'file', 'module', 'lib'])) ?? INITIAL.group,
    unit: pick(query.get('unit'), /** @type {const} */ (['ns', 'share'])) ?? INITIAL.unit,
    search: query.get('q') ?? '',
    fn: numbers(query.get('function') ?? '')[0] ?? null,
    kind: query.get('kind'),
  };
}

/**
 * @template {string} T
 * @param {string | null} text
 * @param {readonly T[]} allowed
 * @returns {T | undefined}
 */
function pick(text, allowed) {
  return allowed.find((one) => one === text);
}

/** @param {string} text */
function numbers(text) {
  return text.split(',').filter((part) => /^\d{1,15}$/.test(part)).map(Number);
}

/**
 * @param {string} text
 * @returns {import('./store.js').Range[]}
 */
function parseRange(text) {
  const found = /^(\d{1,16})-(\d{1,16})$/.exec(text);
  const range = /** @type {import('./store.js').Range} */ ([Number(found?.[1]), Number(found?.[2])]);
  return found && range[0] < range[1] ? [range] : [];
}

/**
 * The selection in the API's form.
 * @param {State} state
 * @param {{threads?: boolean, range?: boolean, filters?: boolean}} [parts] which parts to leave out
 */
export function selectionParams(state, parts = {}) {
  const params = new URLSearchParams();
  const range = state.ranges.at(-1);
  if (parts.threads !== false && state.threads.length > 0) params.set('threads', state.threads.join(','));
  if (parts.range !== false && range) params.set('range', range.join('-'));
  else if (parts.range !== false && state.last !== null) params.set('last', String(state.last));
  if (state.time !== 'running') params.set('state', state.time);
  if (state.event !== null) params.set('event', state.event);
  if (parts.filters === false) return params;
  if (state.own) params.set('own', '1');
  if (state.compiled) params.set('no_inline', '1');
  for (const { kind, pattern } of state.filters) params.append(kind, pattern);
  for (const transform of state.transforms) params.append('transform', transform);
  return params;
}
