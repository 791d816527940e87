// Files dropped onto the page: a profile is opened instead of the shown one, or compared with it.

import { openProfile } from '../api.js';
import { button, fill, h } from '../dom.js';
import { clean } from '../format.js';

/** @param {import('../context.js').Context} ctx */
export function createDrop({ menu, info, offline }) {
  const element = h('div', { class: 'drop', role: 'status', hidden: true });
  const say = (/** @type {string} */ text, /** @type {Node[]} */ ...ways) => {
    element.hidden = false;
    fill(element, h('p', {}, text), ...ways);
  };
  const hide = () => { element.hidden = true; };
  /**
   * @param {File[]} files a second one is compared with the first
   * @param {boolean} compare whether the first is compared with the shown profile
   */
  const open = async (files, compare) => {
    try {
      for (const [i, file] of files.slice(0, 2).entries()) {
        say(`Reading ${clean(file.name, 100)}…`);
        await openProfile(file, compare || i > 0);
      }
      location.assign(location.pathname);
    } catch (error) {
      say(`It was not opened: ${clean(error instanceof Error ? error.message : String(error), 500)}.`, button('Close', hide));
    }
  };
  const has = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes('Files') ?? false;
  if (!offline && !info.live) {
    addEventListener('dragover', (event) => {
      if (!has(event)) return;
      event.preventDefault();
      say('Drop a profile, to open it or to compare it');
    });
    addEventListener('dragleave', (event) => event.relatedTarget === null && hide());
    addEventListener('drop', (event) => {
      const files = [...event.dataTransfer?.files ?? []];
      hide();
      if (files.length === 0) return;
      event.preventDefault();
      if (files.length > 1) return void open(files, false);
      menu.open(event.clientX, event.clientY, clean(files[0]?.name ?? '', 100), [
        { label: 'Open it', run: () => void open(files, false) }, { label: 'Compare it with what is shown', run: () => void open(files, true) },
      ]);
    });
  }
  return { element };
}
