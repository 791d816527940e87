// The only place that converts times, shares, counts and names to text.

import { fitName } from './fit.js';

const UNITS = /** @type {const} */ ([[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']]);

/**
 * Three significant digits.
 * @param {number} value
 */
function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/**
 * A time in a suitable unit: `2.28 s`, `519 ms`, `3 min 20 s`.
 * @param {number} ns
 * @returns {string}
 */
export function formatTime(ns) {
  if (!Number.isFinite(ns)) return '–';
  if (ns < 0) return `-${formatTime(-ns)}`;
  if (ns === 0) return '0 s';
  if (ns >= 99.95e9) return formatMinutes(Math.round(ns / 1e9));
  for (const [size, unit] of UNITS) if (ns >= size * 0.9995) return `${digits(ns / size)} ${unit}`;
  return `${digits(ns)} ns`;
}

/**
 * The same for a column of a table: a long time is a number of minutes or hours, because there is room for one
 * number.
 * @param {number} ns
 */
export function formatShortTime(ns) {
  if (!(ns >= 99.95e9)) return formatTime(ns);
  return ns < 3600e9 ? `${digits(ns / 60e9)} min` : `${digits(ns / 3600e9)} h`;
}

/** @param {number} seconds */
function formatMinutes(seconds) {
  const two = (/** @type {number} */ n) => String(n).padStart(2, '0');
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${formatCount(Math.floor(seconds / 3600))} h ${two(Math.floor(seconds / 60) % 60)} min`;
}

/**
 * A number of bytes in a suitable unit: `519 B`, `2.28 MiB`.
 * @param {number} bytes
 * @returns {string}
 */
export function formatBytes(bytes) {
  if (!Number.isFinite(bytes)) return '–';
  const power = Math.min(4, Math.max(0, Math.floor(Math.log2(Math.max(1, Math.abs(bytes)) * 1.0005) / 10)));
  if (power === 0) return `${formatCount(bytes)} B`;
  return `${digits(bytes / 1024 ** power)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`;
}

/**
 * A point in time on an axis with ticks `step` apart: as many digits as distinguish two ticks.
 * @param {number} ns
 * @param {number} step
 */
export function formatTick(ns, step) {
  if (ns === 0) return '0';
  if (step >= 60e9) return longTick(Math.round(ns / 60e9));
  const [size, unit] = UNITS.find(([unitSize]) => Math.abs(ns) >= unitSize && step >= unitSize / 1000) ?? UNITS[3];
  const places = Math.max(0, Math.min(3, -Math.floor(Math.log10(step / size) + 1e-9)));
  return `${(ns / size).toFixed(places)} ${unit}`;
}

/**
 * @param {number} minutes
 */
function longTick(minutes) {
  const [hours, rest] = [Math.trunc(minutes / 60), minutes % 60];
  if (hours === 0) return `${rest} min`;
  return rest === 0 ? `${hours} h` : `${hours} h ${rest} min`;
}

/**
 * A share: `64.2%`. A part that is too small to see, but not zero, is `<0.1%`.
 * @param {number} part
 * @param {number} whole
 */
export function formatPercent(part, whole) {
  if (!(whole > 0)) return '–';
  const share = (part / whole) * 100;
  if (share > 0 && share < 0.05) return '<0.1%';
  return `${share.toFixed(share >= 99.95 || share === 0 ? 0 : 1)}%`;
}

/**
 * A change of a share, or of a value relative to itself, with its sign: `+4.2%`.
 * @param {number} change
 */
export function formatChange(change) {
  const percent = Math.abs(change * 100);
  return `${change < 0 ? '−' : '+'}${percent.toFixed(percent >= 999.95 ? 0 : 1)}%`;
}

/**
 * A whole number with separators: `1,234,567`.
 * @param {number} count
 */
export function formatCount(count) {
  return Math.round(count).toLocaleString('en-US');
}

/**
 * A count with its noun: `1 function`, `14 functions`.
 * @param {number} count
 * @param {string} noun
 */
export function formatCounted(count, noun) {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

// Control characters, line and direction marks, zero-width characters, lone surrogates. They change other text.
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\u{e0000}-\u{e0fff}]/gu;
// More marks on one letter than any script has: they would cover other lines.
const PILES = /(\p{M}{4})\p{M}+/gu;

/** @param {string} character */
function escapeCharacter(character) {
  return `‹U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}›`;
}

/**
 * Text from outside, made safe to show on one line and cut to a length.
 * @param {string} text
 * @param {number} [max]
 */
export function clean(text, max = 2000) {
  const shown = text.length > max ? text.slice(0, max) : text;
  const safe = shown.replace(UNSAFE, escapeCharacter).replace(PILES, '$1…');
  return text.length > max ? `${safe}… (${formatCount(text.length)} characters)` : safe;
}

/**
 * A name in at most `max` characters, without its least informative parts: `…::Vec<T>::reserve`.
 * @param {string} name
 * @param {number} max
 */
export const shorten = (name, max) => (max < 1 ? '' : fitName(name, max));
