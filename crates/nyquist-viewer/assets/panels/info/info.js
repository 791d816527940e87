// The facts about the recording: the machine, the command, and its completeness.

import { fill, h } from '../../dom.js';
import { clean, formatCount, formatPercent, formatTime } from '../../format.js';
import { countsTime, formatAmount, measureName } from '../../measure.js';

/** @typedef {import('../../api.js').Info} Info */

/**
 * @param {import('../../context.js').Context} ctx
 * @returns {import('../../context.js').Panel}
 */
export function createInfo(ctx) {
  const content = h('div', { class: 'info-content', tabindex: '0' });
  /** @type {Info['summary'] | null} */
  let shown = null;
  const update = () => {
    if (shown === ctx.info.summary) return;
    shown = ctx.info.summary;
    fill(content, ...sectionsOf(ctx.info).map(([title, rows]) => section(title, rows)));
  };
  return { element: h('section', { class: 'panel info' }, content), update, focus: () => content.focus() };
}

/** @param {string} text */
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/**
 * The number of busy CPUs, if samples measure time.
 * @param {Info} info
 * @returns {[string, string][]}
 */
function cpusUsed({ summary, start_ns: start, end_ns: end }) {
  return countsTime() && measureName() === 'CPU time' ? [['CPUs used, on average', (summary.cpu_ns / Math.max(1, end - start)).toFixed(2)]] : [];
}

/**
 * @param {string} label
 * @param {string} value
 * @returns {[string, string]}
 */
const row = (label, value) => [label, value];

/**
 * @param {Info} info
 * @returns {[string, [string, string][]][]}
 */
function sectionsOf(info) {
  const { summary } = info;
  const share = (/** @type {number} */ weight) => `${formatAmount(weight * info.interval_ns)} (${formatPercent(weight, summary.weight)})`;
  // Who measures anything else may not look into the kernel at all.
  const isCpuTime = info.measure.name === 'CPU time' && info.measure.unit === 'ns';
  /** @type {[string, [string, string][]][]} */
  const sections = [['This profile', [
    ['Program', clean(info.name || info.product, 500)], ...(info.axis_is_amount ? [] : [row('Duration', formatTime(info.end_ns - info.start_ns))]),
    [countsTime() ? capital(measureName()) : measureName(), formatAmount(summary.weight * info.interval_ns)], ...cpusUsed(info),
    ['Processes', formatCount(summary.processes)], ['Threads', formatCount(summary.threads)],
  ]], ['Samples', [
    ['Samples', formatCount(summary.samples)], ...(countsTime() ? [row('Sampling interval', formatAmount(info.interval_ns))] : []),
    ...(isCpuTime || summary.kernel > 0 ? [row('In the program', share(summary.user)), row('In the kernel', share(summary.kernel))] : []),
    ...(isCpuTime ? [row('CPU time without a sample', share(summary.not_sampled))] : []),
    ['Lost samples', formatCount(summary.lost_samples)], ['Truncated stacks', share(summary.truncated)],
  ]]];
  for (const { section: title, label, value } of info.extra) {
    const name = clean(title, 100);
    const known = sections.find(([other]) => other === name);
    const fact = row(clean(label, 200), clean(value, 4000));
    // Some facts of the recording are already among the figures.
    if (sections.some(([, rows]) => rows.some(([other]) => other === fact[0]))) continue;
    if (known) known[1].push(fact);
    else sections.push([name, [fact]]);
  }
  return sections;
}

/**
 * @param {string} title
 * @param {[string, string][]} rows
 */
function section(title, rows) {
  return h('section', {}, h('h2', {}, title), h('dl', {}, ...rows.flatMap(([label, value]) => [h('dt', {}, label), h('dd', {}, value)])));
}
