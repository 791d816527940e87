// The tabs and the panel below them. A panel is made when it is first shown.

import { h } from '../dom.js';
import { TABS, set } from '../store.js';

/** The tabs that need a server. A heat map needs times. @type {Set<string>} */
const SERVED = new Set(['stack-chart', 'heat-map', 'marker-chart', 'source']);

/** @typedef {import('../store.js').State} State */
/** @typedef {import('../store.js').Tab} Tab */
/** @typedef {import('../context.js').Panel} Panel */

/**
 * @param {import('../context.js').Context} ctx
 * @param {Record<Tab, () => Panel>} makers
 */
export function createTabs({ store, offline, info }, makers) {
  const there = (/** @type {Tab} */ tab) => !(offline && SERVED.has(tab)) && (tab !== 'compare' || info.before !== null) && !(tab === 'heat-map' && info.axis_is_amount);
  const buttons = TABS.map(([tab, label]) => h('button', {
    type: 'button', role: 'tab', id: `tab-${tab}`, 'aria-controls': 'panel', 'aria-selected': 'false', tabindex: '-1', hidden: !there(tab),
    onclick: () => store.update(set, { tab }),
  }, label));
  const bar = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Views' }, ...buttons);
  const body = h('div', { class: 'tab-body', id: 'panel', role: 'tabpanel' });
  /** @type {Partial<Record<Tab, Panel>>} */
  const panels = {};
  /** @type {Tab | null} */
  let shown = null;
  bar.addEventListener('keydown', (event) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const shownTabs = TABS.map(([tab]) => tab).filter(there);
    const next = shownTabs[(shownTabs.indexOf(store.get().tab) + step + shownTabs.length) % shownTabs.length];
    if (next) store.update(set, { tab: next });
    buttons[TABS.findIndex(([tab]) => tab === next)]?.focus();
  });
  return {
    bar,
    body,
    panel: () => (shown ? panels[shown] : undefined),
    /** @param {State} state */
    update(state) {
      if (!there(state.tab)) return store.update(set, { tab: shown ?? 'flame-graph' });
      const panel = panels[state.tab] ??= makers[state.tab]();
      panel.element.dataset['panel'] = state.tab;
      if (shown !== state.tab) {
        if (shown) forgetPictures(panels[shown]);
        shown = state.tab;
        body.replaceChildren(panel.element);
        body.setAttribute('aria-labelledby', `tab-${state.tab}`);
        TABS.forEach(([tab], i) => {
          buttons[i]?.setAttribute('aria-selected', String(tab === state.tab));
          buttons[i]?.setAttribute('tabindex', tab === state.tab ? '0' : '-1');
        });
        buttons[TABS.findIndex(([tab]) => tab === state.tab)]?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
      }
      panel.update(state);
    },
  };
}

/**
 * Frees the memory of a hidden panel's pictures, which is most of the page's memory. They are redrawn when
 * the panel has a size again.
 * @param {Panel | undefined} panel
 */
function forgetPictures(panel) {
  for (const canvas of panel?.element.querySelectorAll('canvas') ?? []) [canvas.width, canvas.height] = [0, 0];
}
