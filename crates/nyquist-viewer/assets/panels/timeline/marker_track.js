// The graphs of threads that have markers and no samples, such as that of async tasks: bars where their markers are.

import { surface, theme } from '../../canvas.js';
import { groupLine } from '../../color.js';
import { selectionParams } from '../../url.js';
import { createQuestion } from '../../question.js';
import { toX } from '../../axis.js';

/** @typedef {import('../../store.js').State} State */
/** @typedef {import('../../api.js').MarkerChart} Chart */
/** @typedef {import('./track_row.js').TrackRow} TrackRow */

/**
 * Whether only markers say what a thread did.
 * @param {TrackRow} row
 */
const hasMarkersOnly = ({ thread }) => thread.weight === 0 && thread.markers > 0;

/** @param {import('../../widgets/status.js').Status} status */
export function createMarkerTracks(status) {
  /** @type {Map<number, {question: import('../../question.js').Question, chart: Chart | null}>} */
  const known = new Map();
  return {
    /**
     * @param {State} state
     * @param {TrackRow[]} rows
     * @param {number} width
     * @param {() => void} draw
     */
    ask(state, rows, width, draw) {
      for (const { thread: { thread } } of rows.filter(hasMarkersOnly)) {
        const one = known.get(thread) ?? { question: createQuestion(`track-markers-${thread}`, status), chart: null };
        known.set(thread, one);
        const params = selectionParams(state, { threads: false, filters: false });
        params.set('threads', String(thread));
        params.set('width', String(Math.ceil(width / 100) * 100));
        one.question.ask('markers/chart', params, (/** @type {Chart} */ chart) => {
          one.chart = chart;
          draw();
        });
      }
    },
    /**
     * Draws the markers of a thread, if it has nothing else.
     * @param {TrackRow} row
     * @param {number} start
     * @param {number} end
     */
    draw(row, start, end) {
      const chart = hasMarkersOnly(row) ? known.get(row.thread.thread)?.chart : null;
      const target = chart && surface(row.canvas);
      if (!target) return;
      const scale = { start, end, width: target.width };
      const { dark } = theme();
      const height = (target.height - 3) / Math.max(1, chart.rows.length);
      chart.rows.forEach(({ name, bars }, i) => {
        target.ctx.fillStyle = groupLine(name, dark);
        for (const [, from, to] of bars) {
          const x = toX(scale, from);
          target.ctx.fillRect(x, 2 + i * height, Math.max(1, toX(scale, to) - x), Math.max(1, height - 1));
        }
      });
    },
  };
}
