// Dragging over a time axis selects a range; a press without a drag is a click.

/** A press that moves less than this is a click. */
const CLICK_PX = 4;

/**
 * @param {HTMLElement} element
 * @param {object} options
 * @param {(target: Element) => HTMLElement | null} options.area the box whose width is the time axis, for the pressed element
 * @param {(area: HTMLElement, from: number, to: number) => void} options.preview while dragging, in pixels of the area
 * @param {(area: HTMLElement, from: number, to: number) => void} options.select at the end
 * @param {() => void} options.cancel
 * @param {(target: Element, event: PointerEvent) => void} options.click
 */
export function listenForDrags(element, { area, preview, select, cancel, click }) {
  /** @type {{box: HTMLElement, from: number, moved: boolean, target: Element, id: number} | null} */
  let drag = null;
  const place = (/** @type {HTMLElement} */ box, /** @type {PointerEvent} */ event) => {
    const { left, width } = box.getBoundingClientRect();
    return Math.max(0, Math.min(width, event.clientX - left));
  };
  element.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || !(event.target instanceof Element)) return;
    const box = area(event.target);
    if (box) drag = { box, from: place(box, event), moved: false, target: event.target, id: event.pointerId };
  });
  element.addEventListener('pointermove', (event) => {
    if (!drag || event.pointerId !== drag.id) return;
    const to = place(drag.box, event);
    if (!drag.moved && Math.abs(to - drag.from) < CLICK_PX) return;
    if (!drag.moved) element.setPointerCapture(event.pointerId);
    drag.moved = true;
    preview(drag.box, Math.min(drag.from, to), Math.max(drag.from, to));
  });
  element.addEventListener('pointerup', (event) => {
    if (!drag || event.pointerId !== drag.id) return;
    const { box, from, moved, target } = drag;
    const to = place(box, event);
    drag = null;
    if (moved) {
      cancel();
      select(box, Math.min(from, to), Math.max(from, to));
    } else click(target, event);
  });
  const stop = () => {
    if (drag) cancel();
    drag = null;
  };
  element.addEventListener('pointercancel', stop);
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !drag) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    stop();
  }, true);
}
