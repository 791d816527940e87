// The menu of a track: selecting its thread, and hiding and showing tracks.

import { hideThread, selectThread, set } from '../../store.js';
import { threadNames } from './tracks.js';

/**
 * @param {import('../../context.js').Context} ctx
 * @param {MouseEvent} event
 */
export function openTrackMenu(ctx, event) {
  const row = event.target instanceof Element ? event.target.closest('[data-thread]') : null;
  if (!(row instanceof HTMLElement)) return;
  event.preventDefault();
  ctx.tooltip.hide();
  const { store, info } = ctx;
  const thread = Number(row.dataset['thread']);
  const all = [...info.threads, ...info.cores].map((one) => one.thread);
  const { hidden } = store.get();
  /** @type {import('../../widgets/menu.js').MenuItem[]} */
  const items = [
    ...(ctx.offline ? [] : [
      { label: 'Select this thread alone', run: () => store.update((state) => set(state, { threads: [thread] })) },
      { label: 'Add it to the selection, or remove it', run: () => store.update(selectThread, thread, true) },
      /** @type {'line'} */ ('line'),
    ]),
    { label: 'Hide this track', key: 'Delete', run: () => store.update(hideThread, thread) },
    { label: 'Hide all other tracks', run: () => store.update(set, { hidden: all.filter((one) => one !== thread) }) },
    ...(hidden.length > 0 ? [{ label: 'Show all tracks', run: () => store.update(set, { hidden: [] }) }] : []),
  ];
  const { left, bottom } = row.getBoundingClientRect();
  const [x, y] = event.clientX === 0 && event.clientY === 0 ? [left + 20, bottom] : [event.clientX, event.clientY];
  ctx.menu.open(x, y, threadNames(info).get(thread) ?? String(thread), items);
}
