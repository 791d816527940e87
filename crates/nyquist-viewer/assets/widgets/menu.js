// A menu at a point of the page, for the pointer and the keyboard.

import { fill, h } from '../dom.js';

/** @typedef {{label: string, key?: string, run: () => void} | 'line'} MenuItem */

export function createMenu() {
  const element = h('div', { class: 'menu', role: 'menu', tabindex: '-1', hidden: true });
  /** @type {Element | null} */
  let before = null;
  const close = () => {
    if (element.hidden) return false;
    element.hidden = true;
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
    return true;
  };
  document.addEventListener('pointerdown', (event) => {
    if (!element.hidden && event.target instanceof Node && !element.contains(event.target)) element.hidden = true;
  }, true);
  addEventListener('blur', () => void close());
  element.addEventListener('keydown', (event) => onKey(event, element, close));
  return {
    element,
    close,
    /**
     * @param {number} x
     * @param {number} y
     * @param {string} title
     * @param {MenuItem[]} items
     */
    open(x, y, title, items) {
      before = document.activeElement;
      fill(element, title === '' ? null : h('div', { class: 'menu-title' }, title), ...items.map((item) => row(item, close)));
      element.hidden = false;
      const { width, height } = element.getBoundingClientRect();
      element.style.left = `${Math.max(4, Math.min(x, innerWidth - width - 4))}px`;
      element.style.top = `${Math.max(4, Math.min(y, innerHeight - height - 4))}px`;
      buttons(element)[0]?.focus({ preventScroll: true });
    },
  };
}

/**
 * @param {MenuItem} item
 * @param {() => boolean} close
 */
function row(item, close) {
  if (item === 'line') return h('hr', { role: 'separator' });
  const onclick = () => {
    close();
    item.run();
  };
  return h('button', { type: 'button', role: 'menuitem', onclick }, h('span', {}, item.label), item.key ? h('kbd', {}, item.key) : null);
}

/** @param {Element} element */
function buttons(element) {
  return [...element.querySelectorAll('button')];
}

/**
 * @param {KeyboardEvent} event
 * @param {HTMLElement} element
 * @param {() => boolean} close
 */
function onKey(event, element, close) {
  const list = buttons(element);
  const at = list.findIndex((one) => one === document.activeElement);
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  if (step !== 0) list[(at + step + list.length) % list.length]?.focus();
  else if (event.key === 'Home') list[0]?.focus();
  else if (event.key === 'End') list.at(-1)?.focus();
  else if (event.key === 'Escape' || event.key === 'Tab') close();
  else return event.key === 'Enter' || event.key === ' ' ? event.stopPropagation() : undefined;
  event.preventDefault();
  event.stopPropagation();
}
