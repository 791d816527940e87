// Which threads have a track, and how they are called. Pure.

import { clean } from '../../format.js';

/** @typedef {import('../../api.js').Thread} Thread */

/** How many tracks there are before the user asks for more. */
export const FIRST_TRACKS = 30;

/**
 * @param {Thread[]} threads the busiest first
 * @param {{search: string, limit: number, selected: number[]}} options
 * @returns {{shown: Thread[], left: number}} those that are selected are always shown
 */
export function chooseTracks(threads, { search, limit, selected }) {
  const wanted = search.trim().toLowerCase();
  const matching = wanted === '' ? threads : threads.filter((thread) => words(thread).includes(wanted));
  const shown = matching.filter((thread, i) => i < limit || selected.includes(thread.thread));
  return { shown, left: matching.length - shown.length };
}

/** @param {Thread} thread */
function words(thread) {
  return `${thread.name} ${thread.tid} ${thread.process_name} ${thread.pid}`.toLowerCase();
}

/** @param {Thread} thread */
export function threadName(thread) {
  return clean(thread.name, 200) || `thread ${clean(thread.tid, 40)}`;
}

/** @param {Thread} thread */
export function threadDetails(thread) {
  return `${clean(thread.process_name, 200)} (process ${clean(thread.pid, 40)}), thread ${clean(thread.tid, 40)}`;
}
