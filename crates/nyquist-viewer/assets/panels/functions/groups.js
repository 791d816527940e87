// The list of files, of crates and namespaces, or of libraries, in place of that of functions.

import { fill, h } from '../../dom.js';
import { clean, formatCounted, formatPercent } from '../../format.js';
import { formatCell } from '../../measure.js';
import { addFilter, set } from '../../store.js';
import { selectionParams } from '../../url.js';
import { createQuestion } from '../../question.js';

/** @typedef {import('../../store.js').State} State */
/** @typedef {import('../../api.js').GroupRow} GroupRow */

/** What each kind of group is called, and what it is for functions that have none. */
export const GROUPS = /** @type {const} */ ([['function', 'Functions', ''], ['file', 'Files', '(no file)'], ['module', 'Crates', '(no crate)'], ['lib', 'Libraries', '(no library)']]);
const NOUNS = { function: 'function', file: 'file', module: 'crate', lib: 'librar' };

/**
 * The pattern of the functions of a group.
 * @param {State['group']} group
 * @param {string} name
 */
export function patternOf(group, name) {
  const text = name.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
  return group === 'module' ? `/^[<&*\\[(]*(dyn |mut |impl )*${text}(::|\\.|\\/|$)/` : `/^${text}$/`;
}

/**
 * @param {import('../../context.js').Context} ctx
 * @param {import('../../widgets/status.js').Status} status
 */
export function createGroups(ctx, status) {
  const question = createQuestion('functions', status);
  const list = h('div', { class: 'groups', role: 'group', 'aria-label': 'Groups of functions' });
  /**
   * @param {import('../../api.js').Groups} answer
   * @param {State} state
   * @param {HTMLElement} count
   */
  const show = (answer, { group, sort }, count) => {
    const noun = answer.count === 1 ? 'library' : 'libraries';
    count.textContent = group === 'lib' ? `${answer.count} ${noun}` : formatCounted(answer.count, NOUNS[group]);
    fill(list, ...answer.rows.map((row) => groupRow(ctx, row, group, sort, answer)));
    if (answer.weight === 0) status.nothing();
    else if (answer.rows.length === 0) status.message('Nothing has this name.');
  };
  return {
    element: list,
    forget: question.forget,
    /**
     * @param {State} state
     * @param {HTMLElement} count
     */
    ask(state, count) {
      const params = selectionParams(state);
      params.set('by', state.group);
      params.set('sort', state.sort);
      if (state.search !== '') params.set('search', state.search);
      question.ask('groups', params, (answer) => show(answer, state, count));
    },
  };
}

/**
 * @param {import('../../context.js').Context} ctx
 * @param {GroupRow} row
 * @param {State['group']} group
 * @param {State['sort']} sort
 * @param {{weight: number, interval_ns: number}} whole
 */
function groupRow({ store }, { name, self: own, total }, group, sort, { weight, interval_ns: interval }) {
  const bar = h('span', { class: 'bar', 'aria-hidden': 'true' });
  bar.style.width = `${(Math.min(1, (sort === 'own' ? own : total) / weight) * 100).toFixed(2)}%`;
  const shown = name === null ? GROUPS.find(([kind]) => kind === group)?.[2] ?? '' : clean(name, 400);
  // The functions of the group, of which the stacks then consist.
  const open = () => name !== null && store.update((state) => addFilter(set(state, { group: 'function', search: '' }), { kind: 'show', pattern: patternOf(group, name) }));
  return h('button', { type: 'button', class: 'row function-row group-row', title: name === null ? '' : `${clean(name, 1000)}\nShow its functions`, onclick: open },
    h('span', { class: 'number' }, own > 0 ? formatCell(own * interval) : '–'), h('span', { class: 'number share' }, own > 0 ? formatPercent(own, weight) : ''),
    h('span', { class: 'number' }, formatCell(total * interval)), h('span', { class: 'number share' }, formatPercent(total, weight)),
    h('span', { class: 'function-name' }, bar, h('span', { class: 'name' }, shown)));
}
