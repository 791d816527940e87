// Texts for users: times, shares, counts, and names of any kind.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fitName } from '../assets/fit.js';
import { clean, formatBytes, formatCount, formatCounted, formatPercent, formatShortTime, formatTick, formatTime, shorten } from '../assets/format.js';
import { countsTime, formatAmount, setMeasure } from '../assets/measure.js';

test('a time has three digits and the unit that suits it', () => {
  const cases = [[0, '0 s'], [850, '850 ns'], [12_340, '12.3 µs'], [1_200_000, '1.20 ms'], [519e6, '519 ms'], [2.283e9, '2.28 s'], [22.03e9, '22.0 s'],
    [999.7e6, '1.00 s'], [200e9, '3 min 20 s'], [7500e9, '2 h 05 min'], [-5e6, '-5.00 ms'], [NaN, '–']];
  for (const [ns, text] of cases) assert.equal(formatTime(ns), text);
});

test('a long time is one number in a column', () => {
  const cases = [[2.283e9, '2.28 s'], [99.9e9, '99.9 s'], [200e9, '3.33 min'], [3599e9, '60.0 min'], [7500e9, '2.08 h'], [175560e9, '48.8 h'], [NaN, '–']];
  for (const [ns, text] of cases) assert.equal(formatShortTime(ns), text);
});

test('a tick has as many digits as tell it from the next one', () => {
  assert.equal(formatTick(0, 1e9), '0');
  assert.equal(formatTick(2e9, 1e9), '2 s');
  assert.equal(formatTick(1.5e9, 5e8), '1.5 s');
  assert.deepEqual([600e9, 3600e9, 5400e9].map((ns) => formatTick(ns, 600e9)), ['10 min', '1 h', '1 h 30 min']);
  assert.equal(formatTick(2e6, 1e5), '2.0 ms');
  assert.notEqual(formatTick(8_000_001_000, 1000), formatTick(8_000_002_000, 1000));
});

test('a share that is there is never 0', () => {
  assert.equal(formatPercent(642, 1000), '64.2%');
  assert.equal(formatPercent(1, 1e6), '<0.1%');
  assert.equal(formatPercent(0, 10), '0%');
  assert.equal(formatPercent(10, 10), '100%');
  assert.equal(formatPercent(0, 0), '–');
});

test('counts have separators and agree with their noun', () => {
  assert.equal(formatCount(1234567), '1,234,567');
  assert.equal(formatCounted(1, 'function'), '1 function');
  assert.equal(formatCounted(0, 'function'), '0 functions');
});

test('what would change other text is shown as its number', () => {
  assert.equal(clean('a\u202Eb'), 'a‹U+202E›b');
  assert.equal(clean('\u001b[31mred\n\0'), '‹U+001B›[31mred‹U+000A›‹U+0000›');
  assert.equal(clean('\ud800x'), '‹U+D800›x');
  assert.equal(clean('tag\u{e0041}'), 'tag‹U+E0041›');
  assert.equal(clean(`a${'\u0301'.repeat(50)}b`), `a${'\u0301'.repeat(4)}…b`);
  assert.equal(clean('zero\u200bwidth\ufeff'), 'zero‹U+200B›width‹U+FEFF›');
  assert.equal(clean('<b>日本語 𝒳 é</b>'), '<b>日本語 𝒳 é</b>');
});

test('a very long text is cut, with its length', () => {
  const text = clean('x'.repeat(100_000), 50);
  assert.ok(text.length < 100);
  assert.match(text, /… \(100,000 characters\)$/);
});

test('the last segment of a path stays', () => {
  assert.equal(shorten('alloc::vec::Vec<T>::reserve', 100), 'alloc::vec::Vec<T>::reserve');
  assert.equal(shorten('alloc::vec::Vec<T>::reserve', 20), '…::Vec<T>::reserve');
  assert.equal(shorten('alloc::vec::Vec<T>::reserve', 12), '…::reserve');
  assert.equal(shorten('<a::B as c::D>::poll', 8), '…::poll');
  assert.equal(shorten('std::map<a::b, c::d>::find(a::b const&)', 12), '…::find');
  assert.equal(shorten('std::map<a::b, c::d>::find(a::b const&)', 20), 'std::map<…>::find');
  assert.equal(shorten('github.com/prometheus/client/prom.(*R).Gather', 20), '…/prom.(*R).Gather');
  assert.equal(shorten('java.util.concurrent.ForkJoinPool.runWorker', 14), '….runWorker');
});

test('a closure is named with what it is in', () => {
  assert.equal(shorten('a::b::main::{{closure}}', 20), '…::main::{{closure}}');
  assert.match(shorten('a::b::main::{{closure}}', 8), /^…mai/);
});

test('names are shortened as everywhere else', () => {
  const examples = JSON.parse(readFileSync(new URL('../../nyquist-formats/src/fit_names.json', import.meta.url), 'utf8'));
  assert.ok(examples.length > 30);
  for (const [name, width, expected] of examples) assert.equal(fitName(name, width), expected, `${name} in ${width}`);
});

test('a shortened name is never longer than asked, whatever the name', () => {
  for (const name of ['a::b', '::::', '>>><<<', '((((', 'Long' + '::seg<'.repeat(20_000), 'operator->', '…'.repeat(500), 'a.b.c.d', '']) {
    for (let max = 0; max < 30; max++) assert.ok(shorten(name, max).length <= Math.max(max, 0), `${name.slice(0, 20)} in ${max}`);
  }
});

test('bytes have the unit that suits them', () => {
  for (const [bytes, text] of [[0, '0 B'], [519, '519 B'], [1023, '1,023 B'], [2048, '2.00 KiB'], [1.5 * 1024 ** 2, '1.50 MiB'], [3 * 1024 ** 5, '3072 TiB']]) {
    assert.equal(formatBytes(bytes), text);
  }
});

test('amounts are of what the profile counts', () => {
  assert.equal(formatAmount(2_000_000), '2.00 ms');
  setMeasure({ name: 'inuse_space', unit: 'bytes' });
  assert.equal(formatAmount(2048), '2.00 KiB');
  assert.ok(!countsTime());
  setMeasure({ name: 'objects', unit: 'count' });
  assert.equal(formatAmount(12_345), '12,345');
});
