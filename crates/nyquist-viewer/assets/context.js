// The context of every part of the page: the store, the profile's description, and overlays.

/** @typedef {import('./widgets/menu.js').MenuItem} MenuItem */

/**
 * @typedef {object} Context
 * @property {import('./store.js').Store} store
 * @property {import('./api.js').Info} info of the whole profile
 * @property {boolean} offline whether the page contains its responses: it then shows one selection
 * @property {{element: HTMLElement, show: (x: number, y: number, lines: (Node | string)[]) => void, hide: () => void}} tooltip
 * @property {number[] | null} chosenStack the functions of the sample that was clicked in the timeline, from the outermost
 * @property {{open: (x: number, y: number, title: string, items: MenuItem[]) => void, close: () => boolean}} menu
 */

/**
 * A part of the page below the tabs.
 * @typedef {object} Panel
 * @property {HTMLElement} element
 * @property {(state: import('./store.js').State) => void} update called for each change of the state while the panel is shown
 * @property {() => import('./keys.js').Key[]} [keys] keys that work while the panel is shown
 * @property {() => void} [focus] gives the keyboard to the panel's content
 */

export {};
