// Sends requests to the server. A newer request of a panel cancels its older one. Responses are cached.

import { learnNames } from './names.js';

/** @typedef {Record<string, import('./names.js').FunctionRow>} Functions */
/** @typedef {{thread: number, name: string, tid: string, process: number, process_name: string, pid: string, weight: number, markers: number, start_ns: number, end_ns: number}} Thread */
/**
 * @typedef {object} Info
 * @property {string} name
 * @property {string} product
 * @property {{name: string, unit: string}} measure the quantity that samples count, and its unit
 * @property {{samples: string, events: string[]}} recorded the measures that can be shown
 * @property {boolean} has_waits whether waits were recorded
 * @property {boolean} axis_is_amount whether the axis of times counts the measure
 * @property {boolean} has_exact_times whether samples are intervals of exact times, such as slices of a trace
 * @property {string | null} file its name
 * @property {number} interval_ns
 * @property {number} start_ns
 * @property {number} end_ns
 * @property {{section: string, label: string, value: string}[]} extra
 * @property {{samples: number, lost_samples: number, cpu_ns: number, weight: number, user: number, kernel: number, not_sampled: number, truncated: number, processes: number, threads: number}} summary
 * @property {number} counters the number of counters
 * @property {boolean} has_own_code whether the program's own code can be shown alone
 * @property {boolean} has_inlined whether some functions were inlined into others
 * @property {{name: string, file: string | null, weight: number, interval_ns: number} | null} before the other run of a comparison
 * @property {Thread[]} cores the activity of each CPU, if recorded
 * @property {{until_ns: number} | null} live the time up to which a running recording is complete
 * @property {{name: string, color: string}[]} categories
 * @property {Thread[]} threads
 */
/** @typedef {{thread?: number | null, categories: {category: number, ns: number[]}[]}} Track */
/** @typedef {{start_ns: number, end_ns: number, part_ns: number, tracks: Track[]}} Timeline */
/** @typedef {[depth: number, start: number, width: number, fn: number, own: number, before?: number]} FlameBox `before` is a share of the whole */
/** @typedef {{weight: number, interval_ns: number, depth: number, before_weight?: number, boxes: FlameBox[], functions: Functions}} FlameGraph `before_weight` is the whole of the other run */
/** @typedef {{before: number, after: number, change: number, relative: number | null, margin: number, confidence: number, is_noise: boolean}} Comparison */
/** @typedef {{function: number | null, name: string, lib: string | null, self: Comparison}} DiffRow */
/** @typedef {{unit: 'nanoseconds' | 'share', whole: Comparison, count: number, noise_count: number, rows: DiffRow[], functions: Functions}} Diff */
/** @typedef {import('../schema.js').PathNodeRow} TreeRow */
/** @typedef {{weight: number, interval_ns: number, rows: TreeRow[], left_out: number, functions: Functions}} Tree */
/** @typedef {import('../schema.js').FunctionRow} FunctionAmounts */
/** @typedef {{weight: number, interval_ns: number, count: number, rows: FunctionAmounts[], functions: Functions}} FunctionList */
/** @typedef {import('../schema.js').GroupRow} GroupRow a file, module or lib */
/** @typedef {{weight: number, interval_ns: number, count: number, rows: GroupRow[]}} Groups */
/** @typedef {import('../schema.js').NeighborRow} Neighbour */
/** @typedef {import('../schema.js').CallSiteRow} CallSite */
/** @typedef {{weight: number, interval_ns: number, function: FunctionAmounts, callers: Neighbour[], callees: Neighbour[], sites: CallSite[], functions: Functions}} Callers */
/** @typedef {{weight: number, matched: number, functions: number}} SearchResult */
/** @typedef {[depth: number, start: number, end: number, fn: number]} ChartBox */
/** @typedef {[depth: number, start: number, end: number, fn: number, eighths: number]} JoinedBoxes `fn` has most of the time that boxes too narrow to be seen cover */
/** @typedef {{start_ns: number, end_ns: number, depth: number, boxes: ChartBox[], joined: JoinedBoxes[], functions: Functions}} Chart */
/** @typedef {{counter: number, process: number, label: string, description: string, unit: string, is_level: boolean, color: string, values: number[]}} Counter */
/** @typedef {{start_ns: number, end_ns: number, part_ns: number, counters: Counter[]}} Counters */
/** @typedef {{time_ns: number | null, is_waiting: boolean, depth: number, frames: number[], functions: Functions}} Moment */
/** @typedef {{start_ns: number, end_ns: number, column_ns: number, row_ns: number, rows: number, cells: number[]}} HeatMap */
/** @typedef {import('../schema.js').LineRow} LineAmounts */
/** @typedef {[address: number, text: string, own: number, total: number, line: number | null, place: number | null]} Instruction `place`: the number of that of inlined code */
/** @typedef {[fn: string, file: string | null, line: number | null]} InlinedPlace */
/**
 * @typedef {{function: number, interval_ns: number, weight: number, file: string | null, text: string | null, message: string | null,
 *   lines: LineAmounts[], assembly: {message: string | null, instructions: Instruction[], places: InlinedPlace[]}}} Source
 */
/** @typedef {[thread: number, start: number, duration: number | null, name: string, text: string, stack: number | null]} MarkerRow */
/** @typedef {[lane: number, start: number, end: number, count: number, text: string, stack: number | null]} MarkerBar */
/** @typedef {{thread: number, name: string, lanes: number, bars: MarkerBar[]}} MarkerChartRow */
/** @typedef {{start_ns: number, end_ns: number, count: number, rows: MarkerChartRow[], left_out: number}} MarkerChart */
/** @typedef {{count: number, kinds: {name: string, count: number, total_ns: number, has_stacks: boolean}[], rows: MarkerRow[]}} Markers */

/** @typedef {{function: number, count: number, folded: string[]}} FoldedNames */

/** Why a request failed: the server is gone, the token is no longer valid, or the request was refused. */
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

/** The timeout of responses that change. */
const PATIENCE_MS = 10_000;

/** The maximum size of the cache, in characters of JSON, because objects would take several times as much. */
const KEPT_CHARACTERS = 6e6;
/** @type {Map<string, string>} */
const kept = new Map();
let keptSize = 0;
/** @type {Map<string, AbortController>} */
const running = new Map();

/** Responses from the page itself. @type {((question: string, params: URLSearchParams) => any) | null} */
let embedded = null;

/**
 * From now on, a function answers all requests, because the page contains its responses.
 * @param {(question: string, params: URLSearchParams) => any} answers throws if it has none
 */
export function answerFrom(answers) {
  embedded = answers;
}

/**
 * @param {(question: string, params: URLSearchParams) => any} answers
 * @param {string} question
 * @param {URLSearchParams} params
 */
function answerHere(answers, question, params) {
  try {
    const answer = answers(question, params);
    learnNames(answer.functions);
    return answer;
  } catch (error) {
    throw new ApiError('refused', error instanceof Error ? error.message : String(error));
  }
}

/**
 * The response to a request.
 * @param {string} panel the requesting panel; an older request of the same panel is cancelled
 * @param {string} question
 * @param {URLSearchParams} params
 * @returns {Promise<any>} rejects with an ApiError, or an AbortError after a newer request
 */
export async function ask(panel, question, params) {
  if (embedded) return answerHere(embedded, question, params);
  running.get(panel)?.abort();
  running.delete(panel);
  const url = addressOf(question, params);
  const known = kept.get(url);
  if (known !== undefined) return JSON.parse(known);
  const controller = new AbortController();
  running.set(panel, controller);
  try {
    const text = await fetchText(url, controller.signal);
    const answer = JSON.parse(text);
    learnNames(answer.functions instanceof Object ? answer.functions : undefined);
    keep(url, text);
    return answer;
  } finally {
    if (running.get(panel) === controller) running.delete(panel);
  }
}

/**
 * The response to a request whose responses change.
 * @param {string} question
 * @param {URLSearchParams} params
 * @returns {Promise<any>}
 */
export async function askAnew(question, params) {
  return JSON.parse(await fetchText(`api/v1/${question}?${params}`, AbortSignal.timeout(PATIENCE_MS)));
}

/**
 * Opens another profile on the server.
 * @param {Blob} profile
 * @param {boolean} compare with the shown one
 */
export async function openProfile(profile, compare) {
  const params = new URLSearchParams(compare ? { compare: '1' } : {});
  if (profile instanceof File) params.set('name', profile.name);
  await fetchText(`api/v1/open?${params}`, null, profile);
}

/** Counts the profiles of a running recording, because responses about another profile differ. */
let version = 0;

/** @param {number} number */
export function setVersion(number) {
  version = number;
  kept.clear();
  keptSize = 0;
}

/** Whether there are pending requests. */
export const isAsking = () => running.size > 0;

/**
 * The relative address of a request.
 * @param {string} question
 * @param {URLSearchParams} params
 */
export function addressOf(question, params) {
  const text = [params.toString(), version > 0 ? `v=${version}` : ''].filter(Boolean).join('&');
  return `api/v1/${question}${text === '' ? '' : `?${text}`}`;
}

/**
 * @param {string} url
 * @param {AbortSignal | null} signal
 * @param {Blob} [body] the body of the request
 */
async function fetchText(url, signal, body) {
  const response = await fetch(url, body ? { method: 'POST', body } : { signal }).catch((error) => {
    throw error.name === 'AbortError' ? error : new ApiError('gone', 'the server does not answer');
  });
  const text = await response.text().catch((error) => {
    throw error.name === 'AbortError' ? error : new ApiError('gone', 'the answer was cut off');
  });
  if (response.ok) return text;
  throw errorOf(text, response.status);
}

/**
 * The error of a response.
 * @param {string} text
 * @param {number} status
 */
export function errorOf(text, status) {
  /** @type {{error?: unknown, code?: unknown}} */
  let body = {};
  try {
    body = Object(JSON.parse(text));
  } catch {
    // Not a response of this server.
  }
  const message = typeof body.error === 'string' ? body.error : `status ${status}`;
  // The paths of the page's requests exist, so it is the token that is not valid.
  return new ApiError(body.code === 'not-found' ? 'expired' : 'refused', message);
}

/**
 * @param {string} url
 * @param {string} text
 */
function keep(url, text) {
  kept.set(url, text);
  keptSize += text.length;
  for (const [oldest, { length }] of kept) {
    if (keptSize <= KEPT_CHARACTERS || oldest === url) return;
    kept.delete(oldest);
    keptSize -= length;
  }
}
