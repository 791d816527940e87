// The responses of a page from a disk, on a tree whose figures can be computed by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NotInFile, createAnswers } from '../offline/answers.js';

const NAMES = { 1: 'main', 2: 'parse', 3: 'read', 4: 'draw' };
const functions = Object.fromEntries(Object.entries(NAMES).map(([number, name]) => [number, { name, lib: 'app', category: 0 }]));
const graph = (boxes) => ({ weight: 10, interval_ns: 1000, depth: 3, boxes, functions });
const row = ([fn, own, total]) => ({ handle: `f-${fn}`, function: NAMES[fn], self: own, total });
const list = (rows) => ({ weight: 10, interval_ns: 1000, count: rows.length, rows: rows.map(row), functions });
// The rows of a response as numbers.
const short = (rows) => rows.map(({ path, handle, self: own, total, has_children: hasChildren }) => [path, handle && Number(handle.slice(2)), own, total, hasChildren].filter((one) => one !== undefined));
// main 10 (own 1): draw 3, parse 6 (own 2): read 4.
const data = {
  info: { interval_ns: 1000, measure: { name: 'CPU time', unit: 'ns' }, summary: { weight: 10 }, threads: [], functions: {} },
  overview: { start_ns: 0, end_ns: 10, part_ns: 10, tracks: [{ thread: null, categories: [] }] },
  tracks: { start_ns: 0, end_ns: 10, part_ns: 10, tracks: [{ thread: 0, categories: [] }] },
  flame: graph([[0, 0, 10, 1, 1], [1, 0, 3, 4, 3], [1, 3, 6, 2, 2], [2, 3, 4, 3, 4]]),
  inverted: graph([[0, 0, 4, 3, 4], [1, 0, 4, 2, 0]]),
  byOwn: list([[3, 4, 4], [4, 3, 3], [2, 2, 6], [1, 1, 10]]),
  byTotal: list([[1, 1, 10], [2, 2, 6], [3, 4, 4], [4, 3, 3]]),
  counters: { part_ns: 1, counters: [] },
  markers: { count: 2, kinds: [], rows: [[0, 1, null, 'frame', 'one'], [0, 2, null, 'request', 'two']] },
};
const answers = createAnswers(data);
const ask = (question, query = '') => answers(question, new URLSearchParams(query));

test('a subtree that is zoomed into is the whole', () => {
  assert.deepEqual(ask('flamegraph').boxes.length, 4);
  const zoomed = ask('flamegraph', 'transform=focus-subtree:1.2');
  assert.deepEqual([zoomed.weight, zoomed.depth, zoomed.boxes], [6, 2, [[0, 0, 6, 2, 2], [1, 0, 4, 3, 4]]]);
  assert.equal(ask('info', 'transform=focus-subtree:1.2').summary.weight, 6);
  const { rows } = ask('functions', 'transform=focus-subtree:1.2&sort=own');
  assert.deepEqual(short(rows), [[3, 4, 4], [2, 2, 6]]);
  assert.deepEqual([rows[0].self_share, rows[0].total_amount], [4 / 6, 4000]);
  assert.equal(ask('flamegraph', 'transform=focus-subtree:9').weight, 0);
});

test('the tree opens along the heaviest path, and node by node', () => {
  assert.deepEqual(short(ask('tree').rows), [['1', 1, 1, 10, true]]);
  assert.deepEqual(short(ask('tree', 'path=1').rows), [['1.2', 2, 2, 6, true], ['1.4', 4, 3, 3, false]]);
  assert.deepEqual(ask('tree', 'expand=1').rows.map(({ path }) => path), ['1', '1.2', '1.4', '1.2.3']);
  assert.deepEqual(short(ask('tree', 'inverted=1&path=3').rows), [['3.2', 2, 0, 4, false]]);
});

test('functions, their neighbours and what a search finds', () => {
  assert.deepEqual(ask('functions', 'sort=total&search=r&limit=1&offset=1'), { ...ask('functions'), count: 3, rows: [row([3, 4, 4])] });
  const { function: own, callers, callees } = ask('callers', 'function=2');
  assert.deepEqual([[own], callers, callees].map(short), [[[2, 2, 6]], [[1, 6]], [[3, 4]]]);
  assert.deepEqual(short(ask('callers', 'function=1').callers), [[null, 10]]);
  const { matched, functions: count } = ask('search', 'q=/^(parse|read)$/');
  assert.deepEqual([matched, count], [6, 2]);
  assert.deepEqual(ask('markers', 'kind=request').rows.length, 1);
});

test('what the file does not hold is refused with a sentence', () => {
  for (const [question, query] of [['source', 'function=1'], ['functions', 'own=1'], ['timeline', 'range=0-5'], ['flamegraph', 'transform=drop-function:1'], ['flamegraph', 'inverted=1&transform=focus-subtree:1']]) {
    assert.throws(() => ask(question, query), NotInFile);
  }
  assert.deepEqual(ask('timeline', 'function=2').tracks, []);
});

test('functions as they were compiled have responses of their own', () => {
  // `read` was inlined into `parse`.
  const compiled = {
    flame: graph([[0, 0, 10, 1, 1], [1, 0, 3, 4, 3], [1, 3, 6, 2, 6]]), inverted: graph([[0, 0, 6, 2, 6]]),
    byOwn: list([[2, 6, 6], [4, 3, 3], [1, 1, 10]]), byTotal: list([[1, 1, 10], [2, 6, 6], [4, 3, 3]]),
  };
  const both = createAnswers({ ...data, compiled });
  const of = (query) => short(both('functions', new URLSearchParams(query)).rows)[0];
  assert.deepEqual([of('sort=own'), of('sort=own&no_inline=1')], [[3, 4, 4], [2, 6, 6]]);
  assert.deepEqual(short(both('tree', new URLSearchParams('no_inline=1&path=1')).rows)[0], ['1.2', 2, 6, 6, false]);
  assert.equal(both('info', new URLSearchParams()).has_inlined, true);
  assert.equal(ask('info').has_inlined, false);
  assert.throws(() => ask('flamegraph', 'no_inline=1'), NotInFile);
});

test('the tree opens no callees of a function that has more time itself', () => {
  const own = createAnswers({ ...data, flame: graph([[0, 0, 10, 1, 0], [1, 0, 9, 2, 6], [2, 0, 3, 3, 3]]) });
  assert.deepEqual(own('tree', new URLSearchParams('expand=1')).rows.map(({ path }) => path), ['1', '1.2']);
});
