// Rows of a long list that is loaded in pages. No requests, no drawing.

export const PAGE = 200;

/**
 * @template T
 * @typedef {{count: number, rows: (T | undefined)[]}} Pages
 */

/**
 * @template T
 * @returns {Pages<T>}
 */
export function emptyPages() {
  return { count: 0, rows: [] };
}

/**
 * @template T
 * @param {Pages<T>} pages
 * @param {number} offset
 * @param {readonly T[]} rows
 * @param {number} count
 */
export function addPage(pages, offset, rows, count) {
  pages.count = count;
  rows.forEach((row, i) => {
    pages.rows[offset + i] = row;
  });
}

/**
 * The start of the page of a row, if that page has not been received yet.
 * @template T
 * @param {Pages<T>} pages
 * @param {number} index
 * @returns {number | null}
 */
export function missingPage(pages, index) {
  return index < pages.count && pages.rows[index] === undefined ? Math.floor(index / PAGE) * PAGE : null;
}
