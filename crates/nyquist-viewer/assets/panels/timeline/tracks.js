// The threads with a track, and their names. Pure.

import { clean } from '../../format.js';

/** @typedef {import('../../api.js').Thread} Thread */

/** The number of tracks before the user requests more. */
export const FIRST_TRACKS = 30;

/**
 * @param {{threads: Thread[], cores: Thread[]}} info threads with the busiest first
 * @param {{search: string, limit: number, selected: number[], hidden: number[]}} options
 * @returns {{shown: Thread[], left: number}} CPUs first; selected ones are always shown
 */
export function chooseTracks({ threads, cores }, { search, limit, selected, hidden }) {
  const wanted = search.trim().toLowerCase();
  // Who searches a thread finds it even if it is hidden.
  const isWanted = (/** @type {Thread} */ thread) => (wanted === '' ? !hidden.includes(thread.thread) : words(thread).includes(wanted));
  const matching = threads.filter(isWanted);
  const shown = matching.filter((thread, i) => i < limit || selected.includes(thread.thread));
  return { shown: [...cores.filter(isWanted), ...shown], left: matching.length - shown.length };
}

/**
 * The thread, or the CPU, with a number.
 * @param {{threads: Thread[], cores: Thread[]}} info
 * @param {number} number
 */
export function threadOf({ threads, cores }, number) {
  return threads.find(({ thread }) => thread === number) ?? cores.find(({ thread }) => thread === number);
}

/** @param {Thread} thread */
function words(thread) {
  return `${thread.name} ${thread.tid} ${thread.process_name} ${thread.pid}`.toLowerCase();
}

/** @param {Thread} thread */
export function threadName(thread) {
  return clean(thread.name, 200) || `thread ${clean(thread.tid, 40)}`;
}

/** @type {{threads: Thread[], names: Map<number, string>}} */
let named = { threads: [], names: new Map() };

/**
 * The names of all threads, by number. Those of one name also have their ids.
 * @param {{threads: Thread[], cores: Thread[]}} info
 */
export function threadNames({ threads, cores }) {
  if (named.threads !== threads) named = { threads, names: distinctNames([...threads, ...cores]) };
  return named.names;
}

/** @param {Thread[]} threads */
function distinctNames(threads) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const thread of threads) counts.set(threadName(thread), (counts.get(threadName(thread)) ?? 0) + 1);
  return new Map(threads.map((thread) => {
    const name = threadName(thread);
    return [thread.thread, (counts.get(name) ?? 0) > 1 ? `${name} (${clean(thread.tid, 40)})` : name];
  }));
}

/** @param {Thread} thread */
export function threadDetails(thread) {
  return `${clean(thread.process_name, 200)} (process ${clean(thread.pid, 40)}), thread ${clean(thread.tid, 40)}`;
}

/**
 * The text beside a thread's name: its process if there are several, its id if others of the process have
 * the same name.
 * @param {Thread[]} threads
 * @returns {(thread: Thread) => string}
 */
export function shortDetails(threads) {
  const several = new Set(threads.map(({ process }) => process)).size > 1;
  /** @type {Map<string, number>} */
  const names = new Map();
  const key = (/** @type {Thread} */ thread) => `${thread.process} ${thread.name}`;
  for (const thread of threads) names.set(key(thread), (names.get(key(thread)) ?? 0) + 1);
  return (thread) => {
    const same = (names.get(key(thread)) ?? 0) > 1;
    const process = clean(thread.process_name === thread.name ? thread.pid : `${thread.process_name} ${thread.pid}`, 60);
    return [same ? clean(thread.tid, 20) : '', several ? process : ''].filter(Boolean).join(' · ');
  };
}
