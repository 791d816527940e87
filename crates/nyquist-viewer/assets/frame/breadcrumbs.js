// The parts of the selection: a crumb for each, which can be removed in any order.

import { button, fill, h } from '../dom.js';
import { clean, formatPercent, shorten } from '../format.js';
import { formatAmount, formatSpan, measureName } from '../measure.js';
import { nameOf, isKnown, libOf } from '../names.js';
import { clearSelection, isNarrowed, remove, set } from '../store.js';
import { selectionParams } from '../url.js';
import { ask } from '../api.js';
import { WORDS, kindOf, numbersOf } from '../transforms.js';
import { threadNames } from '../panels/timeline/tracks.js';

/** @typedef {import('../store.js').State} State */
/** @typedef {import('../context.js').Context} Context */

/** @type {Record<import('../store.js').FilterKind, string>} */
const FILTER_WORDS = { focus: 'With', ignore: 'Without', show: 'Only frames', hide: 'Hide frames' };

/** @typedef {import('../api.js').Info} Info */

/** What is counted, if it is not the profile's measure alone. @type {Partial<Record<State['time'], string>>} */
const KINDS = { waiting: 'waiting', both: 'time' };

/** @param {Context} ctx */
export function createBreadcrumbs(ctx) {
  const { store } = ctx;
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
    // The whole is of the same kind of time.
    const whole = selectionParams(set(clearSelection(state), { time: state.time, event: state.event }));
    Promise.all([ask('selection', 'info', selectionParams(state)), ask('selection-whole', 'info', whole)]).then(([/** @type {Info} */ part, /** @type {Info} */ all]) => {
      const weight = part.summary.weight;
      amount.textContent = `${formatAmount(weight * part.interval_ns)}, ${formatPercent(weight, all.summary.weight)} of all ${KINDS[state.time] ?? measureName()}`;
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
  /** @type {(part: 'ranges' | 'filters' | 'transforms' | 'threads' | 'time' | 'event' | 'own' | 'compiled' | 'last', index: number, word: string, text: string, full?: string) => void} */
  const add = (part, index, word, text, full = text) => {
    out.push(h('li', { 'data-crumb': part, title: `${word} ${full}`.trim().slice(0, 600) },
      h('span', { class: 'crumb-word' }, word), h('span', { class: 'crumb-text' }, text),
      button('×', () => store.update(remove, part, index), { 'aria-label': `Remove: ${word} ${text}`.slice(0, 200) })));
  };
  if (state.time !== 'running') add('time', 0, '', state.time === 'waiting' ? 'Waiting' : `${measureName()} + waiting`);
  if (state.event !== null) add('event', 0, 'Counts', clean(state.event.replace(/^marker:/, ''), 60));
  if (state.own) add('own', 0, '', 'Only my code', 'Only functions of the program itself; what they call counts as theirs');
  if (state.compiled) add('compiled', 0, '', 'As compiled', 'Functions as they were compiled: the time of inlined functions is that of the function which holds their code');
  if (state.threads.length > 0) add('threads', 0, state.threads.length === 1 ? 'Thread' : 'Threads', threadsText(state.threads, info));
  if (state.last !== null) add('last', 0, 'Last', `${state.last} s`);
  state.ranges.forEach(([start, end], i) => {
    add('ranges', i, 'Range', formatSpan(end - start), `${formatSpan(start - info.start_ns)} to ${formatSpan(end - info.start_ns)}`);
  });
  state.filters.forEach(({ kind, pattern }, i) => add('filters', i, FILTER_WORDS[kind], clean(pattern, 60), clean(pattern, 500)));
  state.transforms.forEach((transform, i) => {
    const full = objectOf(transform, info);
    add('transforms', i, WORDS[kindOf(transform)] ?? kindOf(transform), shorten(objectOf(transform, info, true), 36), full);
  });
  return out;
}

/**
 * @param {number[]} threads
 * @param {import('../api.js').Info} info
 */
function threadsText(threads, info) {
  const names = threads.map((number) => threadNames(info).get(number) ?? '?');
  return names.length > 2 ? `${names.length} selected` : names.map((name) => name.slice(0, 40)).join(', ');
}

/**
 * The subject of a transform.
 * @param {string} transform
 * @param {import('../api.js').Info} info
 * @param {boolean} [short] without arguments
 */
function objectOf(transform, info, short = false) {
  const number = numbersOf(transform).at(-1) ?? 0;
  if (kindOf(transform) === 'drop-category') return clean(info.categories[number]?.name ?? String(number), 60);
  if (kindOf(transform) === 'collapse-lib') return libOf(number);
  return !isKnown(number) ? `#${number}` : short ? nameOf(number).short : nameOf(number).text;
}
