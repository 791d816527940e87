// The keyboard: the actions of keys, wherever the focus is.

/** @typedef {{keys: string[], text: string, run: (key: string) => void}} Key */
/** @typedef {{title: string, keys: Key[]}} KeyGroup */

/**
 * The name of the pressed key; the case of a letter shows whether Shift was held.
 * @param {KeyboardEvent} event
 */
function keyName(event) {
  return event.key === ' ' ? 'Space' : event.key;
}

/**
 * Whether the focused element handles a key: a text field all but Escape, a button Enter and Space.
 * @param {EventTarget | null} target
 * @param {string} key
 */
function belongsToField(target, key) {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) return key !== 'Escape';
  if (key === 'Enter' || key === 'Space') return target.matches('button, a, summary, select, [role="option"]');
  return target instanceof HTMLSelectElement && key !== 'Escape' && key !== '/' && key !== '?';
}

/**
 * Listens for the keys of the groups. Events that were already handled (`preventDefault`) are ignored.
 * @param {() => KeyGroup[]} groups
 */
export function listenForKeys(groups) {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    const name = keyName(event);
    if (belongsToField(event.target, name)) return;
    for (const group of groups()) {
      const key = group.keys.find((one) => one.keys.includes(name));
      if (!key) continue;
      event.preventDefault();
      key.run(name);
      return;
    }
  });
}
