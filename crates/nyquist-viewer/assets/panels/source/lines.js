// The lines of a source file and the instructions of a function, with the weight of each. Pure.

import { clean } from '../../format.js';

/** @typedef {import('../../api.js').Source} Source */
/** @typedef {{label: string, line: number | null, text: string, own: number, total: number, place?: string, skid?: boolean}} Line `place`: where the code was inlined from */

/** Longer lines are cut, because they are data and not text to read. */
const MAX_LINE_LENGTH = 1000;

/**
 * @param {Source} source
 * @returns {Line[]}
 */
export function sourceLines(source) {
  if (source.text === null) return [];
  const amounts = new Map(source.lines.map(({ line, self: own, total }) => [line, { own, total }]));
  const lines = source.text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines.map((text, i) => {
    const { own, total } = amounts.get(i + 1) ?? { own: 0, total: 0 };
    return { label: String(i + 1), line: i + 1, text: showLine(text), own, total };
  });
}

/** The share of the hottest instruction's time from which on the sampled place matters. */
const SKID_FROM = 0.1;

/**
 * The instructions. Where inlined code begins, its place is named. A sample may name the instruction after the one
 * that took the time (skid), unless the event is precise.
 * @param {Source} source
 * @param {boolean} precise
 * @returns {Line[]}
 */
export function instructionLines({ assembly: { instructions, places } }, precise) {
  // The time of a call is that of the called function, and not that of the instruction.
  const here = instructions.map(([, text, own, total]) => (/^(call|blr?)\b/.test(text) ? own : total));
  const most = here.reduce((a, b) => Math.max(a, b), 0);
  return instructions.map(([address, text, own, total, line, place], i) => {
    const found = place === null || place === undefined || place === instructions[i - 1]?.[5] ? undefined : places[place];
    return { label: address.toString(16), line, text: showLine(text), own, total, ...(found ? { place: placeText(found) } : {}), skid: !precise && i > 0 && (here[i] ?? 0) > 0 && (here[i] ?? 0) >= most * SKID_FROM };
  });
}

/**
 * The function, and the name of its file without the folders, and without the revision of a repository.
 * @param {import('../../api.js').InlinedPlace} place
 */
function placeText([fn, file, line]) {
  const name = file?.replace(/:[0-9a-f]*$/, '').split(/[/\\]/).at(-1) ?? '';
  return clean([fn, name === '' ? '' : `${name}${line === null ? '' : `:${line}`}`].filter(Boolean).join('  '), 200);
}

/** @param {string} text */
function showLine(text) {
  return clean(text.replace(/\r$/, '').replace(/\t/g, '    '), MAX_LINE_LENGTH);
}

/**
 * The hottest line: by self time, otherwise by total.
 * @param {Line[]} lines
 * @returns {number} -1 if no line has time
 */
export function hottestLine(lines) {
  let best = -1;
  lines.forEach((line, i) => {
    const most = lines[best];
    if (line.own + line.total > 0 && (!most || line.own > most.own || (line.own === most.own && line.total > most.total))) best = i;
  });
  return best;
}

/**
 * The heat of each line: its total relative to the largest self time or total of all lines.
 * @param {Line[]} lines
 */
export function hottestTotal(lines) {
  return lines.reduce((most, line) => Math.max(most, line.own, line.total), 0);
}
