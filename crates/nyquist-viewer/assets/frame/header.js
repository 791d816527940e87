// The line on top: the program's name, the search, and the links.

import { button, fill, h } from '../dom.js';
import { clean, formatCounted, formatPercent, formatTime } from '../format.js';
import { countsTime, formatAmount, measureName } from '../measure.js';
import { addFilter, set } from '../store.js';
import { selectionParams } from '../url.js';
import { ask } from '../api.js';
import { shareItems } from './share.js';

/** @typedef {import('../store.js').State} State */
/** @typedef {import('../store.js').FilterKind} FilterKind */

/** The pause in typing before the search is sent. */
const TYPING_MS = 120;

/** @type {[FilterKind, string][]} */
const FILTERS = [
  ['focus', 'Only samples with such a function'], ['ignore', 'Only samples without'],
  ['show', 'Only these functions in the stacks'], ['hide', 'Stacks without these functions'],
];

/**
 * @param {import('../context.js').Context} ctx
 * @param {() => void} openHelp
 * @param {HTMLElement} live the sign of a running recording
 */
export function createHeader(ctx, openHelp, live) {
  const { store, info, offline } = ctx;
  const field = h('input', {
    type: 'search', class: 'search', id: 'search', placeholder: 'Search functions   /', 'aria-label': 'Search functions: a part of a name, or /a regular expression/; with ! before it, the others',
    spellcheck: 'false', autocomplete: 'off',
  });
  const found = h('output', { class: 'search-share', id: 'search-share', 'aria-live': 'polite' });
  const filter = button('Filter', () => openFilters(), { class: 'search-filter', title: 'Make a filter of the searched text', 'aria-haspopup': 'menu' });
  const openFilters = () => {
    const { search } = store.get();
    if (search === '' || offline) return field.focus();
    // What is searched with `!` is left out.
    const negated = search.startsWith('!') && search.length > 1;
    const pattern = negated ? search.slice(1) : search;
    const { left, bottom } = filter.getBoundingClientRect();
    ctx.menu.open(left, bottom + 2, `“${clean(pattern, 60)}”`, (negated ? FILTERS.filter(([kind]) => kind === 'ignore' || kind === 'hide') : FILTERS).map(([kind, label]) => ({
      label,
      run: () => {
        field.blur();
        store.update((state) => addFilter(set(state, { search: '' }), { kind, pattern }));
      },
    })));
  };
  let timer = 0;
  field.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => store.update(set, { search: field.value }), TYPING_MS);
  });
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') {
      event.preventDefault();
      store.update(set, { search: field.value });
      openFilters();
    }
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    clearTimeout(timer);
    if (field.value === '') field.blur();
    field.value = '';
    store.update(set, { search: '' });
  });
  const time = createTimeChoice(store, info);
  const own = button('My code', () => store.update((state) => set(state, { own: !state.own })), {
    class: 'own-code', 'aria-pressed': 'false', title: 'Only functions of the program itself  (w)',
  });
  const compiled = button('As compiled', () => store.update((state) => set(state, { compiled: !state.compiled })), {
    class: 'as-compiled', 'aria-pressed': 'false', title: 'Functions as they were compiled: inlined ones are part of the function that holds their code  (n)',
  });
  const share = button('Share', () => {
    const { right, bottom } = share.getBoundingClientRect();
    ctx.menu.open(right - 300, bottom + 2, 'Save what is shown', shareItems(ctx));
  }, { class: 'share', 'aria-haspopup': 'menu', title: 'Save a picture, a page or the profile' });
  time.hidden = offline || time.options.length < 2;
  const program = createProgram();
  const element = h('header', { class: 'top' },
    program.element,
    h('div', { class: 'search-box', role: 'search' }, field, found, filter), own, compiled, time, live, h('span', { class: 'spring' }), firefoxLink(), share,
    button('?', openHelp, { class: 'help-button', title: 'Keys  (?)', 'aria-label': 'Keys' }));
  return {
    element,
    focusSearch() {
      field.focus();
      field.select();
    },
    /** @param {State} state */
    update(state) {
      if (document.activeElement !== field || state.search === '') field.value = state.search;
      time.value = state.event === null ? state.time : `event ${state.event}`;
      if (time.selectedIndex < 0 && state.event !== null) time.append(h('option', { value: `event ${state.event}`, selected: true }, clean(state.event.replace(/^marker:/, 'Markers: '), 60)));
      program.update(info);
      own.setAttribute('aria-pressed', String(state.own));
      own.hidden = offline || !info.has_own_code;
      compiled.setAttribute('aria-pressed', String(state.compiled));
      compiled.hidden = !info.has_inlined && !state.compiled;
      filter.hidden = offline || state.search === '';
      showShare(found, state);
    },
  };
}

/** The name of the profile, and its numbers. */
function createProgram() {
  const title = h('h1', {});
  const facts = h('span', { class: 'facts' });
  return {
    element: h('div', { class: 'program' }, title, facts),
    /** @param {import('../api.js').Info} info */
    update(info) {
      const name = clean(info.name || info.product, 300) || 'Profile';
      const amount = formatAmount(info.summary.weight * info.interval_ns);
      facts.textContent = countsTime() ? `${amount} ${measureName()} in ${formatTime(info.end_ns - info.start_ns)}` : `${amount} ${measureName()}`;
      const compared = info.before && info.file && info.before.file ? [info.before.file, info.file] : null;
      if (compared) facts.textContent = `${clean(compared[0] ?? '', 80)} → ${clean(compared[1] ?? '', 80)}`;
      document.title = `${clean(info.name || info.product, 80)} – nyquist`;
      title.textContent = title.title = name;
    },
  };
}

/**
 * The choice of what is counted: running, waiting, or an event that was recorded besides.
 * @param {import('../store.js').Store} store
 * @param {import('../api.js').Info} info
 */
function createTimeChoice(store, { recorded, has_waits: hasWaits }) {
  const name = clean(recorded.samples, 60);
  const waits = hasWaits ? [h('option', { value: 'waiting' }, 'Waiting'), h('option', { value: 'both' }, `${name} + waiting`)] : [];
  const events = recorded.events.map((event) => h('option', { value: `event ${event}` }, clean(event, 60)));
  const element = h('select', { class: 'time', 'aria-label': 'What is counted' }, h('option', { value: 'running' }, name), ...waits, ...events);
  element.addEventListener('change', () => {
    const event = element.value.startsWith('event ') ? element.value.slice(6) : null;
    store.update(set, { event, time: event === null ? /** @type {State['time']} */ (element.value) : 'running' });
  });
  return element;
}

function firefoxLink() {
  const href = document.querySelector('meta[name="firefox-url"]')?.getAttribute('content') ?? '';
  if (!/^https?:\/\//.test(href)) return null;
  return h('a', { class: 'firefox', href, target: '_blank', rel: 'noopener noreferrer', title: 'Open this profile in the Firefox Profiler' }, 'Firefox Profiler ↗');
}

/**
 * The share of the selection that the search matches.
 * @param {HTMLElement} output
 * @param {State} state
 */
function showShare(output, state) {
  if (state.search === '') return fill(output);
  const params = selectionParams(state);
  params.set('q', state.search);
  ask('search', 'search', params).then((/** @type {import('../api.js').SearchResult} */ found) => {
    fill(output, found.matched > 0 ? `${formatPercent(found.matched, found.weight)} in ${formatCounted(found.functions, 'function')}` : 'no match');
    output.classList.remove('bad');
  }, (error) => {
    if (error.name === 'AbortError') return;
    fill(output, clean(error.message, 80));
    output.classList.add('bad');
  });
}
