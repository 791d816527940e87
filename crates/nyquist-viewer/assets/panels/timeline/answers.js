// The timeline's requests for overview and tracks: with filters, without, and for the selected function.

import { isShareOfTime } from '../../measure.js';
import { rangeOf } from '../../store.js';
import { selectionParams } from '../../url.js';
import { createQuestion } from '../../question.js';
import { partsFor } from './graph.js';

/** @typedef {import('../../store.js').State} State */
/** @typedef {import('../../api.js').Timeline} Timeline */
/** @typedef {import('../../api.js').Track} Track */
/** @typedef {'shown' | 'whole' | 'marked'} Which with the filters, without them, of the searched functions or the selected one */
/** @typedef {Record<Which, Timeline | null>} Answers */

/** How long a function must stay selected before its time is requested, because the arrow keys pass many. */
const REST_MS = 200;

/**
 * @param {string} part the name of this part of the timeline
 * @param {import('../../widgets/status.js').Status} status
 * @param {import('../../api.js').Info} info
 */
export function createAnswers(part, status, info) {
  /** @type {Answers} */
  const answers = { shown: null, whole: null, marked: null };
  const questions = {
    shown: createQuestion(part, status), whole: createQuestion(`${part}-whole`, status), marked: createQuestion(`${part}-marked`, status),
  };
  let timer = 0;
  // Short parts of an axis that counts things would have more or fewer of them by chance. Slices of a trace have
  // exact times, whatever unit their lengths are in.
  const shortestPart = () => (info.axis_is_amount ? 50 * info.interval_ns : isShareOfTime() && !info.has_exact_times ? info.interval_ns : 1);
  /**
   * @param {Which} which
   * @param {URLSearchParams | null} params null if there is nothing to request
   * @param {() => void} draw
   */
  const ask = (which, params, draw) => {
    if (params) {
      return questions[which].ask('timeline', params, (answer) => {
        answers[which] = answer;
        draw();
      });
    }
    questions[which].forget();
    if (!answers[which]) return;
    answers[which] = null;
    draw();
  };
  return {
    answers,
    /**
     * @param {State} state
     * @param {number} width
     * @param {number[] | null} tracks for these threads and the selected range; otherwise for all together
     * and the whole time
     * @param {() => void} draw
     */
    ask(state, width, tracks, draw) {
      const [start, end] = (tracks && rangeOf(state)) || [info.start_ns, info.end_ns];
      const params = (/** @type {boolean} */ filters) => {
        const all = selectionParams(state, { threads: false, range: tracks !== null, filters });
        all.set('parts', String(partsFor(width, end - start, shortestPart())));
        if (tracks) all.set('tracks', tracks.join(','));
        return all;
      };
      ask('shown', params(true), draw);
      ask('whole', state.filters.length + state.transforms.length > 0 || state.own ? params(false) : null, draw);
      clearTimeout(timer);
      const { fn, search } = state;
      if (fn === null && search === '') return ask('marked', null, draw);
      timer = setTimeout(() => {
        const marked = params(true);
        if (search !== '') marked.set('search', search);
        else marked.set('function', String(fn));
        ask('marked', marked, draw);
      }, REST_MS);
    },
    /**
     * The track of a thread in a response; without a thread, the only track.
     * @param {Which} which
     * @param {number | null} thread
     * @returns {{track: Track | undefined, part: number} | null}
     */
    find(which, thread) {
      const answer = answers[which];
      if (!answer) return null;
      return { track: thread === null ? answer.tracks[0] : answer.tracks.find((one) => one.thread === thread), part: answer.part_ns };
    },
  };
}
