// The source of the selected function, line by line, and its instructions beside it.

import { button, fill, h } from '../../dom.js';
import { clean, formatPercent } from '../../format.js';
import { formatAmount } from '../../measure.js';
import { isKnown, nameOf, onNewNames } from '../../names.js';
import { set } from '../../store.js';
import { selectionParams } from '../../url.js';
import { ask } from '../../api.js';
import { createQuestion } from '../../question.js';
import { createStatus } from '../../widgets/status.js';
import { functionKeys } from '../../widgets/function_menu.js';
import { callerItems } from './callers.js';
import { instructionLines, sourceLines } from './lines.js';
import { createListing } from './listing.js';
import { createColoring } from './syntax.js';

/** @typedef {import('../../api.js').Source} Source */

/**
 * @param {import('../../context.js').Context} ctx
 * @returns {import('../../context.js').Panel}
 */
export function createSource(ctx) {
  const { store } = ctx;
  const status = createStatus(store);
  const question = createQuestion('source', status);
  const name = h('span', { class: 'tools-title' });
  const file = h('span', { class: 'tools-note' });
  const callers = button('Callers', () => void openCallers(), { class: 'source-callers', 'aria-haspopup': 'menu', title: 'Go to a line that calls this function  (u)' });
  const code = createListing('Source', (line) => both(line.line, 'assembly'));
  const assembly = createListing('Assembly', (line) => both(line.line, 'code'));
  const codeSide = createSide(code);
  const assemblySide = createSide(assembly);
  const tools = h('div', { class: 'panel-tools' }, callers, name, file);
  const element = h('section', { class: 'panel source' }, tools,
    h('div', { class: 'panel-body' }, h('div', { class: 'source-sides' }, codeSide.element, assemblySide.element), status.element));
  /**
   * @param {number | null} line
   * @param {'code' | 'assembly'} scrolled the side that follows
   */
  const both = (line, scrolled) => {
    code.mark(line, scrolled === 'code');
    assembly.mark(line, scrolled === 'assembly');
  };
  /** @type {Source | null} */
  let shown = null;
  /** The line to show when its function is loaded. @type {{fn: number, line: number} | null} */
  let target = null;
  const openCallers = async () => {
    const { fn } = store.get();
    if (fn === null) return;
    const params = selectionParams(store.get());
    params.set('function', String(fn));
    /** @type {import('../../api.js').Callers | null} */
    const answer = await ask('source-callers', 'callers', params).catch(() => null);
    if (!answer || store.get().fn !== fn) return;
    const items = callerItems(answer, (caller, line) => {
      target = line === null ? null : { fn: caller, line };
      store.update(set, { fn: caller });
      if (caller === fn && line !== null) both(line, 'code');
    });
    const { left, bottom } = callers.getBoundingClientRect();
    ctx.menu.open(left, bottom + 2, items.length > 0 ? 'It is called from' : 'Nothing is known to call it', items);
  };
  const showTitle = () => {
    if (!shown) return;
    const { text, lib } = nameOf(shown.function);
    name.textContent = text.slice(0, 300);
    name.title = text;
    const taken = shown.lines.reduce((sum, line) => sum + line.self, 0);
    file.textContent = [shown.file === null ? null : clean(shown.file, 500), lib,
      taken > 0 ? `${formatAmount(taken * shown.interval_ns)} (${formatPercent(taken, shown.weight)}) in these lines` : null].filter(Boolean).join(' · ');
  };
  /**
   * @param {Source} answer
   * @param {boolean} again of a newer profile
   */
  const show = (answer, again) => {
    const same = again && shown?.file === answer.file;
    shown = answer;
    showTitle();
    const lines = sourceLines(answer);
    codeSide.show(lines.length > 0 ? null : answer.message ?? 'The source of this function is not known.');
    code.show(lines, answer.interval_ns, same, createColoring(answer.file ?? '', lines.map(({ text }) => text)));
    const instructions = instructionLines(answer, isPrecise(ctx.info));
    assemblySide.show(instructions.length > 0 ? null : answer.assembly.message ?? 'The instructions of this function cannot be read.');
    assembly.show(instructions, answer.interval_ns, same, null);
    if (target?.fn === answer.function) both(target.line, 'code');
    target = null;
  };
  onNewNames(showTitle);
  return {
    element,
    /** @param {import('../../store.js').State} state */
    update(state) {
      // Without a function, there is nothing whose callers to show.
      tools.hidden = state.fn === null;
      if (state.fn === null) {
        question.forget();
        if (ctx.info.summary.samples === 0) return status.nothing();
        return status.message('Select a function to see its source.', button('Show the functions', () => store.update(set, { tab: 'functions' })));
      }
      const params = selectionParams(state);
      params.set('function', String(state.fn));
      question.ask('source', params, show);
      if (!isKnown(state.fn)) ask('source-name', 'callers', params).catch(() => undefined);
    },
    focus: () => code.list.element.focus({ preventScroll: true }),
    keys: () => [{ keys: ['u'], text: 'Go to a line that calls it', run: () => void openCallers() }, ...functionKeys(ctx, () => {
      const { fn } = store.get();
      return fn === null ? null : { fn, path: null, inverted: false };
    }).filter((key) => !key.keys.includes('o'))],
  };
}

/**
 * Whether samples name the very instruction, as the event's modifier `p` asks for.
 * @param {import('../../api.js').Info} info
 */
const isPrecise = ({ extra }) => extra.some(({ label, value }) => label === 'Event' && /:\w*p/.test(value));

/**
 * A half of the panel: a listing, or the reason why there is none.
 * @param {{element: HTMLElement}} listing
 */
function createSide(listing) {
  const message = h('p', { class: 'side-message', hidden: true });
  return {
    element: h('div', { class: 'source-side' }, listing.element, message),
    /** @param {string | null} text */
    show(text) {
      listing.element.hidden = text !== null;
      message.hidden = text === null;
      // A line does not break within an option.
      fill(message, ...clean(text ?? '', 600).split(/(--[a-z][a-z-]*)/).map((part, at) => (at % 2 === 1 ? h('span', { class: 'option' }, part) : part)));
    },
  };
}
