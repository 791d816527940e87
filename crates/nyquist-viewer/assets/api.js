// Asks the server. A newer question of a panel cancels its older one, and recent answers are kept.

import { learnNames } from './names.js';

/** @typedef {Record<string, import('./names.js').FunctionRow>} Functions */
/** @typedef {{thread: number, name: string, tid: string, process: number, process_name: string, pid: string, weight: number, start_ns: number, end_ns: number}} Thread */
/**
 * @typedef {object} Info
 * @property {string} name
 * @property {string} product
 * @property {{name: string, unit: string}} measure what samples count, and in what
 * @property {number} interval_ns
 * @property {number} start_ns
 * @property {number} end_ns
 * @property {{section: string, label: string, value: string}[]} extra
 * @property {{samples: number, lost_samples: number, cpu_ns: number, weight: number, user: number, kernel: number, not_sampled: number, truncated: number, processes: number, threads: number}} summary
 * @property {{name: string, color: string}[]} categories
 * @property {Thread[]} threads
 */
/** @typedef {{thread?: number | null, categories: {category: number, ns: number[]}[]}} Track */
/** @typedef {{start_ns: number, end_ns: number, part_ns: number, tracks: Track[]}} Timeline */
/** @typedef {[depth: number, start: number, width: number, fn: number, own: number]} FlameBox */
/** @typedef {{weight: number, interval_ns: number, depth: number, boxes: FlameBox[], functions: Functions}} FlameGraph */
/** @typedef {[path: string, fn: number, own: number, total: number, hasChildren: boolean]} TreeRow */
/** @typedef {{weight: number, interval_ns: number, rows: TreeRow[], left_out: number, functions: Functions}} Tree */
/** @typedef {[fn: number, own: number, total: number]} FunctionAmounts */
/** @typedef {{weight: number, interval_ns: number, count: number, rows: FunctionAmounts[], functions: Functions}} FunctionList */
/** @typedef {[fn: number | null, weight: number]} Neighbour */
/** @typedef {{weight: number, interval_ns: number, function: FunctionAmounts, callers: Neighbour[], callees: Neighbour[], functions: Functions}} Callers */
/** @typedef {{weight: number, matched: number, functions: number}} SearchResult */
/** @typedef {[depth: number, start: number, end: number, fn: number]} ChartBox */
/** @typedef {{start_ns: number, end_ns: number, depth: number, boxes: ChartBox[], functions: Functions}} Chart */
/** @typedef {[line: number, own: number, total: number]} LineAmounts */
/** @typedef {[address: number, text: string, own: number, total: number, line: number | null]} Instruction */
/**
 * @typedef {{function: number, interval_ns: number, weight: number, file: string | null, text: string | null, message: string | null,
 *   lines: LineAmounts[], assembly: {message: string | null, instructions: Instruction[]}}} Source
 */
/** @typedef {[thread: number, start: number, duration: number | null, name: string, text: string]} MarkerRow */
/** @typedef {{count: number, kinds: {name: string, count: number, total_ns: number}[], rows: MarkerRow[]}} Markers */

/** Why there is no answer: the server is gone, the token is not known any more, or the question was refused. */
export class ApiError extends Error {
  /**
   * @param {'gone' | 'expired' | 'refused'} kind
   * @param {string} message
   */
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

/** How much of recent answers is kept, in characters of JSON. */
const KEPT_CHARACTERS = 6e6;
/** @type {Map<string, {answer: any, size: number}>} */
const kept = new Map();
let keptSize = 0;
/** @type {Map<string, AbortController>} */
const running = new Map();

/**
 * The answer to a question.
 * @param {string} panel whose question it is; an older one of the same panel is cancelled
 * @param {string} question
 * @param {URLSearchParams} params
 * @returns {Promise<any>} rejects with an ApiError, or an AbortError when a newer question has come
 */
export async function ask(panel, question, params) {
  running.get(panel)?.abort();
  running.delete(panel);
  const url = addressOf(question, params);
  const known = kept.get(url);
  if (known) return known.answer;
  const controller = new AbortController();
  running.set(panel, controller);
  try {
    const text = await fetchText(url, controller.signal);
    const answer = JSON.parse(text);
    learnNames(answer.functions instanceof Object ? answer.functions : undefined);
    keep(url, answer, text.length);
    return answer;
  } finally {
    if (running.get(panel) === controller) running.delete(panel);
  }
}

/**
 * The relative address of a question.
 * @param {string} question
 * @param {URLSearchParams} params
 */
export function addressOf(question, params) {
  const text = params.toString();
  return `api/v1/${question}${text === '' ? '' : `?${text}`}`;
}

/**
 * @param {string} url
 * @param {AbortSignal} signal
 */
async function fetchText(url, signal) {
  const response = await fetch(url, { signal }).catch((error) => {
    throw error.name === 'AbortError' ? error : new ApiError('gone', 'the server does not answer');
  });
  const text = await response.text().catch((error) => {
    throw error.name === 'AbortError' ? error : new ApiError('gone', 'the answer was cut off');
  });
  if (response.ok) return text;
  const message = messageOf(text) ?? `status ${response.status}`;
  if (response.status === 404 && !/question|function|thread/.test(message)) throw new ApiError('expired', message);
  throw new ApiError('refused', message);
}

/** @param {string} text */
function messageOf(text) {
  try {
    const error = JSON.parse(text).error;
    return typeof error === 'string' ? error : null;
  } catch {
    return null;
  }
}

/**
 * @param {string} url
 * @param {any} answer
 * @param {number} size
 */
function keep(url, answer, size) {
  kept.set(url, { answer, size });
  keptSize += size;
  for (const [oldest, { size: oldSize }] of kept) {
    if (keptSize <= KEPT_CHARACTERS || oldest === url) return;
    kept.delete(oldest);
    keptSize -= oldSize;
  }
}
