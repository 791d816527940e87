// A menu of the lines that call a function.

import { clean, formatPercent, shorten } from '../../format.js';
import { nameOf, numberOf } from '../../names.js';

/**
 * @param {import('../../api.js').Callers} answer
 * @param {(caller: number, line: number | null) => void} go
 * @returns {import('../../widgets/menu.js').MenuItem[]}
 */
export function callerItems({ sites, function: { total } }, go) {
  return sites.map(({ handle, file, line, total: weight }) => {
    const caller = numberOf(handle);
    const place = file === null || line === null ? 'line not known' : `${clean(file.split('/').at(-1) ?? '', 40)}:${line}`;
    return { label: `${shorten(nameOf(caller).short, 60)} · ${place} · ${formatPercent(weight, total)}`, run: () => go(caller, line) };
  });
}
