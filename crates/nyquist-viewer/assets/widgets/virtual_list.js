// A list of rows of one height. Only the visible ones exist.

import { h, onResize } from '../dom.js';

/**
 * @typedef {object} VirtualList
 * @property {HTMLElement} element the scrolled box
 * @property {(count: number) => void} setCount makes all rows again
 * @property {() => void} refresh makes the visible rows again
 * @property {(index: number, where?: 'near' | 'middle') => void} reveal scrolls to a row
 * @property {(id: string | null) => void} setActive names the element of the selected row, as far as it exists
 * @property {() => number} pageSize the number of visible rows
 */

/**
 * @param {object} options
 * @param {number} options.rowHeight
 * @param {Record<string, any>} options.attributes of the scrolled box
 * @param {(index: number) => HTMLElement} options.row
 * @returns {VirtualList}
 */
export function createVirtualList({ rowHeight, attributes, row }) {
  const space = h('div', { class: 'vlist-space', role: 'presentation' });
  const element = h('div', { ...attributes, class: `vlist ${attributes['class'] ?? ''}` }, space);
  /** @type {Map<number, HTMLElement>} */
  let rows = new Map();
  let count = 0;
  let scheduled = false;
  /** @type {string | null} */
  let active = null;
  /** Rows that are out of sight do not exist. */
  const nameActive = () => {
    if (active !== null && [...rows.values()].some(({ id }) => id === active)) element.setAttribute('aria-activedescendant', active);
    else element.removeAttribute('aria-activedescendant');
  };

  const draw = () => {
    scheduled = false;
    const first = Math.max(0, Math.floor(element.scrollTop / rowHeight) - 4);
    const last = Math.min(count, Math.ceil((element.scrollTop + element.clientHeight) / rowHeight) + 4);
    for (const [index, old] of rows) {
      if (index >= first && index < last) continue;
      old.remove();
      rows.delete(index);
    }
    for (let index = first; index < last; index++) {
      if (rows.has(index)) continue;
      const made = row(index);
      made.style.top = `${index * rowHeight}px`;
      rows.set(index, made);
      space.append(made);
    }
    nameActive();
  };
  const schedule = () => {
    if (!scheduled) requestAnimationFrame(draw);
    scheduled = true;
  };
  const refresh = () => {
    space.replaceChildren();
    rows = new Map();
    draw();
  };
  element.addEventListener('scroll', schedule, { passive: true });
  onResize(element, draw);
  return {
    element,
    refresh,
    setCount(newCount) {
      count = newCount;
      space.style.height = `${count * rowHeight}px`;
      refresh();
    },
    reveal(index, where = 'near') {
      const top = index * rowHeight;
      const height = element.clientHeight;
      if (where === 'middle') element.scrollTop = top - height / 2 + rowHeight / 2;
      else if (top < element.scrollTop) element.scrollTop = top;
      else if (top + rowHeight > element.scrollTop + height) element.scrollTop = top + rowHeight - height;
      draw();
    },
    setActive(id) {
      active = id;
      nameActive();
    },
    pageSize: () => Math.max(1, Math.floor(element.clientHeight / rowHeight) - 1),
  };
}

/** The keys that move the selection of a list. */
export const LIST_KEYS = ['ArrowUp', 'ArrowDown', 'PageUp', 'PageDown', 'Home', 'End'];

/**
 * The target of a key in a list, or null if it does not move. `at` is -1 without a selection.
 * @param {string} key
 * @param {number} at
 * @param {number} count
 * @param {number} page
 */
export function moveInList(key, at, count, page) {
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: count - 1 }[key];
  return to === undefined || count === 0 ? null : Math.max(0, Math.min(count - 1, to));
}
