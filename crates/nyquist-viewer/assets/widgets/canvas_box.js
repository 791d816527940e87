// A scrolled box with a canvas as large as its window, and a second canvas above it for marks.

import { h } from '../dom.js';

/**
 * @param {Record<string, any>} attributes of the scrolled box
 * @param {...Node} above elements that stay on top of it
 */
export function createCanvasBox(attributes, ...above) {
  const canvas = h('canvas', { class: 'flame-canvas', role: 'img', 'aria-label': attributes['aria-label'] });
  const marks = h('canvas', { class: 'flame-canvas', 'aria-hidden': 'true' });
  const frame = h('div', { class: 'flame-window' }, canvas, marks);
  const space = h('div');
  const scroller = h('div', { tabindex: '0', role: 'application', ...attributes }, ...above, frame, space);
  /**
   * Makes the window as high as the rest of the box, and the content as high as it needs.
   * @param {number} content
   * @param {number} [taken] the height of the elements above
   */
  const fit = (content, taken = 0) => {
    const height = Math.max(0, scroller.clientHeight - taken);
    frame.style.height = `${height}px`;
    space.style.height = `${Math.max(0, content - height)}px`;
  };
  return { canvas, marks, frame, scroller, fit };
}
