// The tracks of counters, such as memory in use, below all threads. They are folded if there are many.

import { button, fill, h, onResize } from '../../dom.js';
import { clean, formatCounted, formatTime } from '../../format.js';
import { set } from '../../store.js';
import { selectionParams } from '../../url.js';
import { createQuestion } from '../../question.js';
import { tooltipRow, tooltipTitle } from '../../widgets/tooltip.js';
import { drawCounter } from './draw.js';
import { partAt, peakOf, valueText } from './values.js';

/** @typedef {import('../../api.js').Counter} Counter */
/** @typedef {import('../../store.js').State} State */
/** @typedef {{element: HTMLElement, canvas: HTMLCanvasElement, value: HTMLElement, peak: HTMLElement, counter: Counter}} CounterRow */

/** The number of counters that are shown unless the user folds them. More would push the threads out of sight. */
const FEW = 3;

/**
 * @param {import('../../context.js').Context} ctx
 * @param {import('../../widgets/status.js').Status} status
 */
export function createCounters(ctx, status) {
  const question = createQuestion('counters', status);
  /** @type {CounterRow[]} */
  let rows = [];
  let partNs = 1;
  const list = h('div', { class: 'counter-list', role: 'group', 'aria-label': 'Counters' });
  const toggle = button('', () => ctx.store.update(set, { counters: !isShown(ctx.store.get()) }), { class: 'counter-toggle', 'aria-expanded': 'false' });
  const element = h('div', { class: 'counters', hidden: ctx.info.counters === 0 }, toggle, list);
  const isShown = (/** @type {State} */ state) => state.counters ?? ctx.info.counters <= FEW;
  const draw = () => {
    if (!list.hidden) for (const { canvas, counter } of rows) drawCounter(canvas, counter);
  };
  onResize(list, draw);
  /** @param {import('../../api.js').Counters} answer */
  const show = (answer) => {
    partNs = answer.part_ns;
    const known = rows.map(({ counter }) => counter.counter).join();
    if (known !== answer.counters.map(({ counter }) => counter).join()) {
      const several = new Set(answer.counters.map(({ process }) => process)).size > 1;
      rows = answer.counters.map((counter) => counterRow(counter, several ? processOf(ctx.info, counter.process) : ''));
      fill(list, ...rows.map((row) => row.element));
    }
    rows.forEach((row, i) => {
      row.counter = /** @type {Counter} */ (answer.counters[i]);
      row.value.textContent = valueText(row.counter, Math.max(...row.counter.values), partNs);
      showPeak(row, answer);
    });
    draw();
  };
  return {
    element,
    draw,
    /**
     * @param {State} state
     * @param {number} width
     */
    ask(state, width) {
      if (ctx.info.counters === 0) return;
      const shown = isShown(state);
      list.hidden = !shown;
      toggle.setAttribute('aria-expanded', String(shown));
      toggle.textContent = `${shown ? '▾' : '▸'} ${formatCounted(ctx.info.counters, 'counter')}`;
      if (!shown) return;
      const params = new URLSearchParams({ parts: String(Math.max(1, Math.min(1000, Math.floor(width / 2)))) });
      for (const [name, value] of selectionParams(state, { threads: false, filters: false })) if (name !== 'state' && name !== 'event') params.set(name, value);
      if (state.event !== null) params.set('event', state.event);
      question.ask('counters', params, show);
    },
    /**
     * The text for the pointer's position in a track.
     * @param {HTMLElement} area
     * @param {number} x
     * @param {number} time since the beginning
     */
    say(area, x, time) {
      const row = rows.find(({ element }) => element.contains(area));
      if (!row) return null;
      const value = row.counter.values[partAt(row.counter.values.length, x, area.clientWidth)] ?? 0;
      const description = row.counter.description === '' ? [] : [clean(row.counter.description, 200)];
      const peak = peakOf(row.counter);
      const highest = peak ? [tooltipRow('peak', valueText(row.counter, peak.value, partNs))] : [];
      return [tooltipTitle(clean(row.counter.label, 100)), tooltipRow('at', formatTime(time)), tooltipRow('value', valueText(row.counter, value, partNs)), ...highest, ...description];
    },
  };
}

/**
 * Marks where a level is highest.
 * @param {CounterRow} row
 * @param {import('../../api.js').Counters} answer
 */
function showPeak({ element, peak, counter }, { start_ns: start, end_ns: end, part_ns: partNs }) {
  const found = peakOf(counter);
  peak.hidden = found === null;
  const name = clean(counter.label, 100);
  if (!found) {
    element.setAttribute('aria-label', name);
    return;
  }
  peak.style.left = `${found.share * 100}%`;
  element.setAttribute('aria-label', `${name}, peak ${valueText(counter, found.value, partNs)} at ${formatTime(start + found.share * (end - start))}`);
}

/**
 * The name of a process.
 * @param {import('../../api.js').Info} info
 * @param {number} process
 */
function processOf({ threads }, process) {
  const thread = threads.find((one) => one.process === process);
  return thread ? `${clean(thread.process_name, 60)} ${clean(thread.pid, 20)}` : '';
}

/**
 * @param {Counter} counter
 * @param {string} process its name, if there are several
 * @returns {CounterRow}
 */
function counterRow(counter, process) {
  const canvas = h('canvas', { class: 'graph', 'aria-hidden': 'true' });
  const peak = h('span', { class: 'counter-peak', 'aria-hidden': 'true', hidden: true });
  const name = clean(counter.label, 100);
  const value = h('span', { class: 'track-time' });
  const label = h('div', { class: 'overview-label counter-label', title: clean(counter.description, 300) || name }, h('span', { class: 'track-name' }, name), h('span', { class: 'track-detail' }, process), value);
  const element = h('div', { class: 'track counter', role: 'img', 'aria-label': name, 'data-counter': counter.counter }, label,
    h('div', { class: 'graph-area', 'data-area': 'range' }, canvas, peak));
  return { element, canvas, value, peak, counter };
}
