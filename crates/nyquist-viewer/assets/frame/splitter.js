// The line between the timeline and the tabs. Dragging it, or the arrow keys on it, change their heights.

import { h } from '../dom.js';

/** @param {HTMLElement} above the part whose height is changed */
export function createSplitter(above) {
  const element = h('div', { class: 'splitter', role: 'separator', 'aria-orientation': 'horizontal', 'aria-label': 'Height of the timeline', 'aria-valuenow': 0, tabindex: '0' });
  const resize = (/** @type {number} */ height) => {
    const pixels = Math.round(Math.max(60, Math.min(height, innerHeight - 220)));
    above.style.height = `${pixels}px`;
    element.setAttribute('aria-valuenow', String(pixels));
  };
  element.addEventListener('pointerdown', (event) => {
    const offset = above.getBoundingClientRect().height - event.clientY;
    element.setPointerCapture(event.pointerId);
    const move = (/** @type {PointerEvent} */ moved) => resize(moved.clientY + offset);
    element.addEventListener('pointermove', move);
    element.addEventListener('lostpointercapture', () => element.removeEventListener('pointermove', move), { once: true });
  });
  element.addEventListener('keydown', (event) => {
    const step = event.key === 'ArrowDown' ? 26 : event.key === 'ArrowUp' ? -26 : 0;
    if (step === 0) return;
    event.preventDefault();
    resize(above.getBoundingClientRect().height + step);
  });
  return element;
}
