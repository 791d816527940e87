// A menu of the lines that call a function.

import { clean, formatPercent, shorten } from '../../format.js';
import { nameOf } from '../../names.js';

/**
 * @param {import('../../api.js').Callers} answer
 * @param {(caller: number, line: number | null) => void} go
 * @returns {import('../../widgets/menu.js').MenuItem[]}
 */
export function callerItems({ sites, function: [, , total] }, go) {
  return sites.map(([caller, file, line, weight]) => {
    const place = file === null || line === null ? 'line not known' : `${clean(file.split('/').at(-1) ?? '', 40)}:${line}`;
    return { label: `${shorten(nameOf(caller).short, 60)} · ${place} · ${formatPercent(weight, total)}`, run: () => go(caller, line) };
  });
}
