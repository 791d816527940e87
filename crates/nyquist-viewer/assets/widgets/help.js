// The list of keys, over the page.

import { button, fill, h } from '../dom.js';

/**
 * @param {() => import('../keys.js').KeyGroup[]} groups
 */
export function createHelp(groups) {
  const body = h('div', { class: 'help-groups' });
  const element = h('dialog', { class: 'help', 'aria-label': 'Keys' });
  element.append(h('header', {}, h('h2', {}, 'Keys'), button('Close', () => element.close())), body);
  element.addEventListener('click', (event) => event.target === element && element.close());
  return {
    element,
    open() {
      fill(body, ...groups().filter((group) => group.keys.length > 0).map(groupElement));
      element.showModal();
    },
  };
}

/** @param {import('../keys.js').KeyGroup} group */
function groupElement(group) {
  const rows = group.keys.flatMap((key) => [h('dt', {}, ...key.keys.map((name) => h('kbd', {}, nameOfKey(name)))), h('dd', {}, key.text)]);
  return h('section', {}, h('h3', {}, group.title), h('dl', {}, ...rows));
}

/** @param {string} name */
function nameOfKey(name) {
  return { ArrowUp: '↑', ArrowDown: '↓', ArrowLeft: '←', ArrowRight: '→', Escape: 'Esc' }[name] ?? name;
}
