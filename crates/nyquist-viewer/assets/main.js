// Starts the page: reads the address, requests the profile's description, and builds the parts.

import { ask } from './api.js';
import { h } from './dom.js';
import { setEmptiness } from './emptiness.js';
import { listenForKeys } from './keys.js';
import { setMeasure } from './measure.js';
import { TABS, createStore, set, stepBack } from './store.js';
import { fromQuery } from './url.js';
import { createBreadcrumbs } from './frame/breadcrumbs.js';
import { createDrop } from './frame/drop.js';
import { createHeader } from './frame/header.js';
import { keepHistory } from './frame/history.js';
import { createMeasureSwitch, paramsOfMeasure } from './frame/measure_switch.js';
import { createLive } from './frame/live.js';
import { createSplitter } from './frame/splitter.js';
import { createTabs } from './frame/tabs.js';
import { createCompare } from './panels/compare/compare.js';
import { CallTree } from './panels/call_tree/call_tree.js';
import { FlameGraph } from './panels/flame_graph/flame_graph.js';
import { Functions } from './panels/functions/functions.js';
import { HeatMap } from './panels/heat_map/heat_map.js';
import { createInfo } from './panels/info/info.js';
import { MarkerChart } from './panels/marker_chart/marker_chart.js';
import { Markers } from './panels/markers/markers.js';
import { createSource } from './panels/source/source.js';
import { StackChart } from './panels/stack_chart/stack_chart.js';
import { Timeline } from './panels/timeline/timeline.js';
import { createHelp } from './widgets/help.js';
import { createMenu } from './widgets/menu.js';
import { createStatus } from './widgets/status.js';
import { createTooltip } from './widgets/tooltip.js';

/** @typedef {import('./context.js').Context} Context */
/** @typedef {import('./keys.js').KeyGroup} KeyGroup */

/** The pointer's actions, for the list of keys. */
const POINTER = [
  ['Drag', 'Select a range of the timeline or of the stack chart'], ['Click', 'Select a thread, and in its graph the stack at that time; zoom into a box'],
  ['Ctrl+click', 'Add a thread to the selection'], ['Ctrl+wheel', 'Zoom the time at the pointer (or w and s, where the timeline or a chart has the keyboard)'],
  ['Shift+wheel', 'Move the time (or a and d)'], ['Right click', 'What can be done with a function, or with a track'],
].map(([name, text]) => ({ keys: [String(name)], text: String(text), run: () => undefined }));

const store = createStore(fromQuery(location.search));
const status = createStatus(store);
document.body.append(status.element);
start();

async function start() {
  status.loading('Opening the profile');
  try {
    const info = await ask('profile', 'info', paramsOfMeasure(store.get()));
    status.element.remove();
    setMeasure(info.measure, info.axis_is_amount);
    setEmptiness(info);
    build(info);
  } catch (error) {
    status.failed(error, () => void start());
  }
}

/** @param {import('./api.js').Info} info */
function build(info) {
  const tooltip = createTooltip();
  const menu = createMenu();
  // Two runs were opened for comparison.
  if (info.before && location.search === '') store.update(set, { tab: 'compare', color: 'change' });
  /** @type {Context} */
  const ctx = { store, info, offline: document.getElementById('answers') !== null, tooltip, menu, chosenStack: null };
  const timeline = new Timeline(ctx);
  const breadcrumbs = createBreadcrumbs(ctx);
  const tabs = createTabs(ctx, {
    'flame-graph': () => new FlameGraph(ctx), 'call-tree': () => new CallTree(ctx), functions: () => new Functions(ctx),
    'stack-chart': () => new StackChart(ctx), 'heat-map': () => new HeatMap(ctx), markers: () => new Markers(ctx),
    'marker-chart': () => new MarkerChart(ctx), source: () => createSource(ctx),
    compare: () => createCompare(ctx), info: () => createInfo(ctx),
  });
  /** @returns {KeyGroup[]} */
  const groups = () => [
    { title: TABS.find(([tab]) => tab === store.get().tab)?.[1] ?? '', keys: tabs.panel()?.keys?.() ?? [] },
    { title: 'Everywhere', keys: pageKeys() },
    { title: 'Pointer', keys: POINTER },
  ];
  const help = createHelp(groups);
  const live = createLive(ctx);
  const header = createHeader(ctx, help.open, live.element);
  const pageKeys = () => keysOfPage(ctx, { search: header.focusSearch, threads: () => timeline.focusSearch(), help: help.open, panel: () => tabs.panel()?.focus?.() });

  const splitter = createSplitter(timeline.element);
  document.body.append(h('div', { class: 'page' }, header.element, breadcrumbs.element, h('main', {}, timeline.element, splitter, tabs.bar, tabs.body, menu.element)),
    tooltip.element, help.element, createDrop(ctx).element);
  /** @param {import('./store.js').State} state */
  const update = (state) => {
    header.update(state);
    live.update(state);
    breadcrumbs.update(state);
    timeline.update(state);
    tabs.update(state);
  };
  keepHistory(store);
  const measures = createMeasureSwitch(ctx, () => update(store.get()));
  store.subscribe((state) => {
    tooltip.hide();
    if (measures.shows(state)) update(state);
  });
  listenForKeys(groups);
  update(store.get());
}

/**
 * @param {Context} ctx
 * @param {{search: () => void, threads: () => void, help: () => void, panel: () => void}} go
 * @returns {import('./keys.js').Key[]}
 */
function keysOfPage({ store, menu, info, offline }, go) {
  const back = () => {
    if (!menu.close()) store.update(stepBack);
  };
  return [
    { keys: ['/'], text: 'Search functions', run: go.search },
    { keys: ['t'], text: 'Find a thread', run: go.threads },
    { keys: ['Escape', 'Backspace'], text: 'One step back in the selection', run: back },
    { keys: ['i'], text: 'Inverted or not', run: () => store.update((state) => set(state, { inverted: !state.inverted })) },
    ...(offline || !info.has_own_code ? [] : [{ keys: ['w'], text: 'Only my code, or all', run: () => store.update((state) => set(state, { own: !state.own })) }]),
    ...(info.has_inlined ? [{ keys: ['n'], text: 'Functions as they were compiled, or with inlined ones', run: () => store.update((state) => set(state, { compiled: !state.compiled })) }] : []),
    { keys: ['a'], text: 'All threads', run: () => store.update(set, { threads: [] }) },
    ...TABS.map(([tab, label], i) => ({ keys: [String((i + 1) % 10)], text: label, run: () => store.update(set, { tab }) })),
    { keys: ['p'], text: 'Go to the content of the tab', run: go.panel },
    { keys: ['?'], text: 'This list', run: go.help },
  ];
}
