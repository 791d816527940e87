// The box beside the pointer that describes the target under it.

import { fill, h } from '../dom.js';

/** @returns {{element: HTMLElement, show: (x: number, y: number, lines: (Node | string)[]) => void, hide: () => void}} */
export function createTooltip() {
  const element = h('div', { class: 'tooltip', role: 'tooltip', hidden: true });
  return {
    element,
    show(x, y, lines) {
      fill(element, ...lines.map((line) => (typeof line === 'string' ? h('div', {}, line) : line)));
      element.hidden = false;
      const { width, height } = element.getBoundingClientRect();
      const left = x + 14 + width > innerWidth - 4 ? Math.max(4, Math.min(x - width - 10, innerWidth - width - 4)) : x + 14;
      const top = y + 16 + height > innerHeight - 4 ? Math.max(4, y - height - 10) : y + 16;
      element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    },
    hide() {
      element.hidden = true;
    },
  };
}

/**
 * A line of a tooltip: a label and a value.
 * @param {string} label
 * @param {string} value
 */
export function tooltipRow(label, value) {
  return h('div', { class: 'tooltip-row' }, h('span', {}, label), h('b', {}, value));
}

/** @param {string} text */
export function tooltipTitle(text) {
  return h('div', { class: 'tooltip-title' }, text);
}
