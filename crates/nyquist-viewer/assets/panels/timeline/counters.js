// The tracks of counters, such as memory in use, below the threads of their process.

import { h } from '../../dom.js';
import { clean, formatTime } from '../../format.js';
import { selectionParams } from '../../url.js';
import { createQuestion } from '../../question.js';
import { tooltipRow, tooltipTitle } from '../../widgets/tooltip.js';
import { drawCounter } from './draw.js';
import { partAt, valueText } from './values.js';

/** @typedef {import('../../api.js').Counter} Counter */
/** @typedef {{element: HTMLElement, canvas: HTMLCanvasElement, value: HTMLElement, counter: Counter}} CounterRow */

/**
 * @param {import('../../context.js').Context} ctx
 * @param {import('../../widgets/status.js').Status} status
 */
export function createCounters(ctx, status) {
  const question = createQuestion('counters', status);
  /** @type {CounterRow[]} */
  let rows = [];
  let partNs = 1;
  const draw = () => {
    for (const { canvas, counter } of rows) drawCounter(canvas, counter);
  };
  return {
    draw,
    /**
     * The rows of a process.
     * @param {number} process
     */
    of: (process) => rows.filter(({ counter }) => counter.process === process).map(({ element }) => element),
    /**
     * @param {import('../../store.js').State} state
     * @param {number} width
     * @param {() => void} show places the rows
     */
    ask(state, width, show) {
      if (ctx.info.counters === 0) return;
      const params = new URLSearchParams({ parts: String(Math.max(1, Math.min(1000, Math.floor(width / 2)))) });
      for (const [name, value] of selectionParams(state, { threads: false, filters: false })) if (name !== 'state') params.set(name, value);
      question.ask('counters', params, (/** @type {import('../../api.js').Counters} */ answer) => {
        partNs = answer.part_ns;
        const known = rows.map(({ counter }) => counter.counter).join();
        if (known !== answer.counters.map(({ counter }) => counter).join()) {
          rows = answer.counters.map(counterRow);
          show();
        }
        rows.forEach((row, i) => {
          row.counter = /** @type {Counter} */ (answer.counters[i]);
          row.value.textContent = valueText(row.counter, Math.max(...row.counter.values), partNs);
        });
        draw();
      });
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
      return [tooltipTitle(clean(row.counter.label, 100)), tooltipRow('at', formatTime(time)), tooltipRow('value', valueText(row.counter, value, partNs)), ...description];
    },
  };
}

/**
 * @param {Counter} counter
 * @returns {CounterRow}
 */
function counterRow(counter) {
  const canvas = h('canvas', { class: 'graph', 'aria-hidden': 'true' });
  const name = clean(counter.label, 100);
  const value = h('span', { class: 'track-time' });
  const label = h('div', { class: 'overview-label counter-label', title: clean(counter.description, 300) || name }, h('span', { class: 'track-name' }, name), value);
  const element = h('div', { class: 'track counter', role: 'img', 'aria-label': name, 'data-counter': counter.counter }, label,
    h('div', { class: 'graph-area', 'data-area': 'range' }, canvas));
  return { element, canvas, value, counter };
}
