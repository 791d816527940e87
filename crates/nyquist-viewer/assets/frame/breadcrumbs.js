// The parts of the selection: a crumb for each, which can be removed in any order.

import { button, fill, h } from '../dom.js';
import { clean, formatPercent, formatTime, shorten } from '../format.js';
import { formatAmount, measureName } from '../measure.js';
import { nameOf, isKnown, libOf } from '../names.js';
import { clearSelection, isNarrowed, remove } from '../store.js';
import { selectionParams } from '../url.js';
import { ask } from '../api.js';
import { WORDS, kindOf, numbersOf } from '../transforms.js';
import { threadName, threadOf } from '../panels/timeline/tracks.js';

/** @typedef {import('../store.js').State} State */
/** @typedef {import('../context.js').Context} Context */

/** @type {Record<import('../store.js').FilterKind, string>} */
const FILTER_WORDS = { focus: 'With', ignore: 'Without', show: 'Only frames', hide: 'Hide frames' };

/** @param {Context} ctx */
export function createBreadcrumbs(ctx) {
  const { store, info } = ctx;
  const list = h('ol', { class: 'crumbs', 'aria-label': 'Selection' });
  const amount = h('span', { class: 'crumbs-amount' });
  const clear = button('Clear', () => store.update(clearSelection), { class: 'crumbs-clear' });
  const hint = h('span', { class: 'crumbs-hint' }, ctx.offline ? 'A saved view: click a box of the flame graph to zoom into it. The timeline shows all of it.'
    : 'The whole profile. Drag over the timeline to select a range, click a thread to select it.');
  const element = h('nav', { class: 'crumbs-bar', 'aria-label': 'Selection' }, hint, list, amount, clear);
  const draw = () => {
    fill(list, ...crumbs(ctx));
    list.scrollLeft = list.scrollWidth;
  };
  /** @param {State} state */
  const update = (state) => {
    const narrowed = isNarrowed(state);
    element.classList.toggle('narrowed', narrowed);
    hint.hidden = narrowed;
    clear.hidden = amount.hidden = !narrowed;
    draw();
    if (!narrowed) return;
    const params = selectionParams(state);
    ask('selection', 'info', params).then((/** @type {import('../api.js').Info} */ answer) => {
      const weight = answer.summary.weight;
      amount.textContent = `${formatAmount(weight * answer.interval_ns)}, ${formatPercent(weight, info.summary.weight)} of all`;
      draw();
    }, () => { amount.textContent = ''; });
  };
  return { element, update, draw };
}

/**
 * @param {Context} ctx
 * @returns {HTMLElement[]}
 */
function crumbs({ store, info }) {
  const state = store.get();
  /** @type {HTMLElement[]} */
  const out = [];
  /** @type {(part: 'ranges' | 'filters' | 'transforms' | 'threads' | 'time' | 'own' | 'last', index: number, word: string, text: string, full?: string) => void} */
  const add = (part, index, word, text, full = text) => {
    out.push(h('li', { 'data-crumb': part, title: `${word} ${full}`.trim().slice(0, 600) },
      h('span', { class: 'crumb-word' }, word), h('span', { class: 'crumb-text' }, text),
      button('×', () => store.update(remove, part, index), { 'aria-label': `Remove: ${word} ${text}`.slice(0, 200) })));
  };
  if (state.time !== 'running') add('time', 0, '', state.time === 'waiting' ? 'Waiting' : `${measureName()} + waiting`);
  if (state.own) add('own', 0, '', 'Only my code', 'Only functions of the program itself; what they call counts as theirs');
  if (state.threads.length > 0) add('threads', 0, state.threads.length === 1 ? 'Thread' : 'Threads', threadsText(state.threads, info));
  if (state.last !== null) add('last', 0, 'Last', `${state.last} s`);
  state.ranges.forEach(([start, end], i) => {
    add('ranges', i, 'Range', formatTime(end - start), `${formatTime(start - info.start_ns)} to ${formatTime(end - info.start_ns)}`);
  });
  state.filters.forEach(({ kind, pattern }, i) => add('filters', i, FILTER_WORDS[kind], clean(pattern, 60), clean(pattern, 500)));
  state.transforms.forEach((transform, i) => {
    const full = objectOf(transform, info);
    add('transforms', i, WORDS[kindOf(transform)] ?? kindOf(transform), shorten(full, 36), full);
  });
  return out;
}

/**
 * @param {number[]} threads
 * @param {import('../api.js').Info} info
 */
function threadsText(threads, info) {
  const names = threads.map((number) => threadOf(info, number)).map((thread) => (thread ? threadName(thread) : '?'));
  return names.length > 2 ? `${names.length} selected` : names.map((name) => name.slice(0, 40)).join(', ');
}

/**
 * The subject of a transform.
 * @param {string} transform
 * @param {import('../api.js').Info} info
 */
function objectOf(transform, info) {
  const number = numbersOf(transform).at(-1) ?? 0;
  if (kindOf(transform) === 'drop-category') return clean(info.categories[number]?.name ?? String(number), 60);
  if (kindOf(transform) === 'collapse-lib') return libOf(number);
  return !isKnown(number) ? `#${number}` : nameOf(number).text;
}
