// Selects the stack that a thread has at a time: its innermost function, and its row of the call tree.

import { ask } from '../../api.js';
import { set } from '../../store.js';

/**
 * @param {import('../../context.js').Context} ctx
 * @param {number} thread
 * @param {number} time
 */
export async function selectStack(ctx, thread, time) {
  const { event } = ctx.store.get();
  const params = new URLSearchParams({ thread: String(thread), time: String(time), ...(event === null ? {} : { event }) });
  /** @type {import('../../api.js').Moment | null} */
  const moment = await ask('clicked-moment', 'moment', params).catch(() => null);
  const [innermost] = moment?.frames ?? [];
  if (!moment || innermost === undefined) return;
  // Of a very deep stack, the outer functions are not known.
  ctx.chosenStack = moment.depth === moment.frames.length ? [...moment.frames].reverse() : null;
  ctx.store.update(set, { fn: innermost });
}
