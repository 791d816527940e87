// Makes elements. Text is added only as text nodes, so that names can never become markup.

/** @typedef {Node | string | null | undefined | false} Child */

/**
 * An element with attributes, listeners (`onclick`) and children. `true` sets an empty attribute; `false`, `null` and
 * `undefined` leave it out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any>} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on') && typeof value === 'function') element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  for (const child of children) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

/**
 * Replaces the children of an element.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  /** @type {(Node | string)[]} */
  const kept = [];
  for (const child of children) if (child !== null && child !== undefined && child !== false) kept.push(child);
  element.replaceChildren(...kept);
}

/**
 * A button.
 * @param {string} label
 * @param {(event: MouseEvent) => void} onclick
 * @param {Record<string, any>} [attributes]
 */
export function button(label, onclick, attributes = {}) {
  return h('button', { type: 'button', onclick, ...attributes }, label);
}

/**
 * Calls back with the size of an element, now and whenever it changes.
 * @param {Element} element
 * @param {() => void} callback
 */
export function onResize(element, callback) {
  new ResizeObserver(() => requestAnimationFrame(callback)).observe(element);
}
