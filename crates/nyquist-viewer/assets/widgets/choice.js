// A group of buttons, one of which is pressed.

import { button, h } from '../dom.js';

/**
 * @param {string} label
 * @param {[string, () => void][]} choices
 */
export function createChoice(label, choices) {
  const buttons = choices.map(([text, choose]) => button(text, choose, { 'aria-pressed': 'false' }));
  const element = h('div', { class: 'choice', role: 'group', 'aria-label': label }, ...buttons);
  const press = (/** @type {number} */ index) => buttons.forEach((one, i) => one.setAttribute('aria-pressed', String(i === index)));
  return { element, press };
}
