// The state of the page, and the pure functions that change it. The whole page is derived from it.

import { lastRange } from './progress.js';
import { addTransform, removeTransform } from './transforms.js';

/** @typedef {[number, number]} Range start and end in ns */
/** @typedef {'focus' | 'ignore' | 'show' | 'hide'} FilterKind */
/** @typedef {{kind: FilterKind, pattern: string}} Filter */
/** @typedef {'flame-graph' | 'call-tree' | 'functions' | 'stack-chart' | 'markers' | 'source' | 'compare' | 'heat-map' | 'marker-chart' | 'info'} Tab */

/**
 * @typedef {object} State
 * @property {number[]} threads the selected ones; an empty list means all
 * @property {Range[]} ranges each is a part of the previous one, the last one is effective
 * @property {number | null} last only this number of last seconds
 * @property {'running' | 'waiting' | 'both'} time the kind of time that is counted
 * @property {string | null} event the event, or the markers, that are counted instead of samples
 * @property {boolean | null} counters whether counters are shown; null: if there are few
 * @property {Filter[]} filters
 * @property {string[]} transforms
 * @property {boolean} own only the program's own code
 * @property {boolean} compiled functions as they were compiled: inlined ones are part of their holder
 * @property {number[]} hidden the threads without a track
 * @property {Tab} tab
 * @property {boolean} inverted callees before callers
 * @property {boolean} icicle whether the flame graph has its roots on top
 * @property {'module' | 'lib' | 'category' | 'change'} color the meaning of the colours of boxes
 * @property {'own' | 'total'} sort
 * @property {'function' | 'file' | 'module' | 'lib'} group the rows of the list of functions
 * @property {'ns' | 'share'} unit the quantity that is compared with another run
 * @property {string} search
 * @property {number | null} fn the selected function
 * @property {string | null} kind the shown kind of markers
 */

export const TABS = /** @type {const} */ ([
  ['flame-graph', 'Flame graph'], ['call-tree', 'Call tree'], ['functions', 'Functions'], ['stack-chart', 'Stack chart'], ['heat-map', 'Heat map'],
  ['markers', 'Markers'], ['marker-chart', 'Marker chart'], ['source', 'Source'], ['compare', 'Compare'], ['info', 'Info'],
]);

/** @type {State} */
export const INITIAL = Object.freeze({
  threads: [], ranges: [], last: null, time: 'running', event: null, counters: null, filters: [], transforms: [], own: false, compiled: false, hidden: [], tab: 'flame-graph', inverted: false, icicle: false, color: 'module',
  sort: 'own', group: 'function', unit: 'ns', search: '', fn: null, kind: null,
});

/**
 * Some members of the state set to new values.
 * @param {State} state
 * @param {Partial<State>} change
 * @returns {State}
 */
export const set = (state, change) => ({ ...state, ...change });

/**
 * Selects a thread alone, or with `more` adds it to the selection or removes it.
 * @param {State} state
 * @param {number} thread
 * @param {boolean} more
 * @returns {State}
 */
export function selectThread(state, thread, more) {
  const has = state.threads.includes(thread);
  if (!more) return set(state, { threads: has && state.threads.length === 1 ? [] : [thread] });
  return set(state, { threads: has ? state.threads.filter((t) => t !== thread) : [...state.threads, thread].sort((a, b) => a - b) });
}

/**
 * Selects a range. A range outside of the current one replaces it.
 * @param {State} state
 * @param {Range} range
 * @returns {State}
 */
export function selectRange(state, range) {
  const kept = state.ranges.filter(([start, end]) => start <= range[0] && end >= range[1] && end - start > range[1] - range[0]);
  return set(state, { ranges: [...kept, range], last: null });
}

/**
 * Shows a range in place of the selected ones, or all of the time. Zooming leaves no steps.
 * @param {State} state
 * @param {Range | null} range
 * @returns {State}
 */
export const setRange = (state, range) => set(state, { ranges: range ? [range] : [], last: null });

/**
 * @param {State} state
 * @param {string} transform
 * @returns {State}
 */
export const transform = (state, transform) => set(state, { transforms: addTransform(state.transforms, transform) });

/**
 * @param {State} state
 * @param {Filter} filter
 * @returns {State}
 */
export const addFilter = (state, filter) => set(state, { filters: [...state.filters, filter] });

/**
 * The selection without one of its parts.
 * @param {State} state
 * @param {'ranges' | 'filters' | 'transforms' | 'threads' | 'time' | 'event' | 'own' | 'compiled' | 'last'} part
 * @param {number} index
 * @returns {State}
 */
export function remove(state, part, index) {
  if (part === 'transforms') return set(state, { transforms: removeTransform(state.transforms, index) });
  if (part === 'ranges') return set(state, { ranges: state.ranges.filter((_, i) => i !== index) });
  if (part === 'filters') return set(state, { filters: state.filters.filter((_, i) => i !== index) });
  if (part === 'event') return set(state, { event: null });
  if (part === 'own') return set(state, { own: false });
  if (part === 'compiled') return set(state, { compiled: false });
  if (part === 'last') return set(state, { last: null });
  return part === 'threads' ? set(state, { threads: [] }) : set(state, { time: INITIAL.time });
}

/**
 * One step back: removes the last transform, otherwise the last filter, the last range, or the threads.
 * @param {State} state
 * @returns {State}
 */
export function stepBack(state) {
  for (const part of /** @type {const} */ (['transforms', 'filters', 'ranges'])) {
    if (state[part].length > 0) return remove(state, part, state[part].length - 1);
  }
  if (state.last !== null) return remove(state, 'last', 0);
  return state.threads.length > 0 ? remove(state, 'threads', 0) : state;
}

/**
 * Everything selected again.
 * @param {State} state
 * @returns {State}
 */
export const clearSelection = (state) => set(state, { threads: [], ranges: [], last: null, filters: [], transforms: [], own: false, compiled: false, time: INITIAL.time, event: null });

/**
 * Whether the selection is less than the whole profile.
 * @param {State} state
 */
export function isNarrowed(state) {
  return state.threads.length + state.ranges.length + state.filters.length + state.transforms.length > 0 || state.last !== null || state.own || state.compiled || state.time !== INITIAL.time || state.event !== null;
}

/**
 * Hides the track of a thread. Its samples stay selected.
 * @param {State} state
 * @param {number} thread
 * @returns {State}
 */
export const hideThread = (state, thread) => set(state, { hidden: [...new Set([...state.hidden, thread])].sort((a, b) => a - b) });

/** The effective range. @param {State} state @returns {Range | null} */
export const rangeOf = (state) => state.ranges.at(-1) ?? (state.last === null ? null : lastRange(state.last));

/**
 * @typedef {object} Store
 * @property {() => State} get
 * @property {<A extends unknown[]>(reducer: (state: State, ...rest: A) => State, ...rest: A) => void} update
 * @property {(listener: (state: State, before: State) => void) => void} subscribe
 */

/**
 * @param {State} initial
 * @returns {Store}
 */
export function createStore(initial) {
  let state = initial;
  /** @type {((state: State, before: State) => void)[]} */
  const listeners = [];
  return {
    get: () => state,
    update(reducer, ...rest) {
      const before = state;
      state = reducer(state, ...rest);
      if (state !== before) for (const listener of listeners) listener(state, before);
    },
    subscribe: (listener) => void listeners.push(listener),
  };
}
