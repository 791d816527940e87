// A running recording: polls for updates, and lets the page repeat its requests. It can be paused.

import { askAnew, ask, isAsking, setVersion } from '../api.js';
import { button, h } from '../dom.js';
import { isRunning, setProgress } from '../progress.js';
import { paramsOfMeasure } from './measure_switch.js';
import { set } from '../store.js';

/** @typedef {import('../api.js').Info} Info */
/** @typedef {{version: number, state: 'running' | 'saving' | 'ended'}} Update */

/** The polling interval. */
const EVERY_MS = 500;

/** The numbers of last seconds that can be shown alone. */
export const LAST = [5, 10, 30, 60];

const WORDS = { running: 'Live', saving: 'Program ended, saving…', ended: 'Program ended' };

/**
 * Threads in their previous order, so that rows stay in place.
 * @param {import('../api.js').Thread[]} threads
 * @param {import('../api.js').Thread[]} before
 */
export function inOrderOf(threads, before) {
  const places = new Map(before.map(({ thread }, place) => [thread, place]));
  const place = (/** @type {import('../api.js').Thread} */ { thread }) => places.get(thread) ?? before.length;
  return [...threads].sort((a, b) => place(a) - place(b));
}

/** @param {import('../context.js').Context} ctx */
export function createLive({ store, info, offline }) {
  const word = h('span', { class: 'live-word', role: 'status' });
  const pause = button('Pause', () => press(), { class: 'live-pause', 'aria-pressed': 'false', title: 'Keep what is shown' });
  const last = h('select', { class: 'last', 'aria-label': 'Which part of the time is shown' }, h('option', { value: '' }, 'All of the time'),
    ...LAST.map((seconds) => h('option', { value: seconds }, `Last ${seconds} s`)));
  const element = h('div', { class: 'live', hidden: offline || info.live === null }, word, pause, last);
  let paused = false;
  let shown = 0;
  /** @type {Update['state']} */
  let phase = 'running';
  last.addEventListener('change', () => store.update((state) => set(state, { last: Number(last.value) || null, ranges: [] })));
  const say = (/** @type {string | null} */ trouble = null) => {
    word.textContent = trouble ?? (paused && phase === 'running' ? 'Paused' : WORDS[phase]);
    word.dataset['state'] = trouble ? 'gone' : paused ? 'paused' : phase;
    pause.textContent = paused ? 'Go on' : 'Pause';
    pause.setAttribute('aria-pressed', String(paused));
    pause.hidden = phase === 'ended' && !paused;
  };
  const press = () => {
    paused = !paused;
    say();
    void look();
  };
  const look = async () => {
    if (document.hidden) return;
    try {
      /** @type {Update} */
      const update = await askAnew('live', new URLSearchParams(paused ? { paused: '1' } : {}));
      phase = update.state;
      // A newer request cancels the older one, which must not happen again and again.
      if (!paused && update.version !== shown && !isAsking()) await refresh(update.version);
      say();
    } catch (error) {
      if (/** @type {Error} */ (error).name !== 'AbortError') say('No answer from nyquist');
    }
  };
  /** @param {number} version */
  const refresh = async (version) => {
    setVersion(version);
    const { threads } = info;
    /** @type {Info} */
    const next = await ask('profile', 'info', paramsOfMeasure(store.get()));
    shown = version;
    Object.assign(info, next, phase === 'ended' ? {} : { threads: inOrderOf(next.threads, threads) });
    setProgress(phase !== 'ended', next.live?.until_ns ?? next.end_ns);
    store.update((state) => ({ ...state }));
  };
  const follow = async () => {
    await look();
    if (phase !== 'ended' || isRunning()) setTimeout(() => void follow(), EVERY_MS);
  };
  if (info.live && !offline) {
    setProgress(true, info.live.until_ns);
    say();
    void follow();
    document.addEventListener('visibilitychange', () => void look());
  }
  return {
    element,
    /** @param {import('../store.js').State} state */
    update(state) {
      last.value = state.last === null ? '' : String(state.last);
    },
  };
}
